#include "format/dataset/shard_store.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "format/dataset/dataset_part.hpp"
#include "format/dataset/dataset_view.hpp"
#include "remote/cache/shard_cache.hpp"
#include "remote/cache/transit_area.hpp"
#include "remote/http/http_client.hpp"

namespace shard {

Dataset ShardStore::with_folders(const Dataset& data, const ShardFolders& folders) {
  const Dataset::Impl& from = *data.impl_;
  const auto cache =
      folders.cache.empty()
          ? nullptr
          : std::make_shared<const ShardCache>(folders.cache, folders.cache_bytes, folders.cache_spare_bytes);
  const auto transit = folders.transit.empty()
                           ? nullptr
                           : std::make_shared<const TransitArea>(folders.transit, folders.transit_shared);
  std::map<const DatasetPart*, std::shared_ptr<const DatasetPart>> parts;
  for (const ViewShard& shard : from.shards) parts.try_emplace(shard.part.get(), shard.part);
  const bool as_files = cache && std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
                          return !part.first->is_remote() || part.first->is_in(*cache);
                        });
  for (auto& [there, part] : parts)
    if (there->is_remote()) part = there->with_storage(cache, transit, as_files);
  std::vector<ViewShard> shards = from.shards;
  for (ViewShard& shard : shards) shard.part = parts[shard.part.get()];
  auto impl = std::make_shared<Dataset::Impl>(std::move(shards), from.info, from.path);
  impl->add_cuts(from.cuts);
  return Dataset(std::move(impl));
}

std::string ShardStore::problem() const {
  const DatasetPart* last = nullptr;
  for (const ViewShard& shard : data_.impl_->shards) {
    if (shard.part.get() == last) continue;
    last = shard.part.get();
    if (std::string problem = last->storage_problem(); !problem.empty()) return problem;
  }
  return {};
}

bool ShardStore::fetch_to_cache(std::uint32_t shard, const std::stop_token& stop) const {
  static_cast<void>(data_.shard(shard));  // checks the number
  const ViewShard& at = data_.impl_->shards[shard];
  return at.part->fetch_to_cache(at.index, stop);
}

bool ShardStore::fetch_to_transit(std::uint32_t shard, const std::stop_token& stop) const {
  static_cast<void>(data_.shard(shard));
  const ViewShard& at = data_.impl_->shards[shard];
  return at.part->fetch_to_transit(at.index, stop);
}

void ShardStore::evict(std::uint32_t shard) const {
  const ViewShard& at = data_.impl_->shards[shard];
  at.part->evict(at.index);
}

ShardStore::Traffic ShardStore::traffic() const {
  std::set<const HttpClient*> clients;
  const DatasetPart* last = nullptr;
  for (const ViewShard& shard : data_.impl_->shards) {
    if (shard.part.get() == last) continue;
    last = shard.part.get();
    if (const HttpClient* const client = last->client()) clients.insert(client);
  }
  Traffic sum;
  for (const HttpClient* const client : clients) {
    sum.bytes += client->stats().bytes;
    sum.requests += client->stats().requests;
    sum.retries += client->stats().retries;
  }
  return sum;
}

}  // namespace shard
