// How a part of a data set on a server gets shards to this machine: into the cache,
// or through the transit area.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/files/file_io.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/dataset_part.hpp"
#include "format/dataset/shard_match.hpp"
#include "format/shard/arrival_proof.hpp"
#include "remote/cache/shard_cache.hpp"
#include "remote/s3/remote_file.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr int kFetchAttempts = 3;  // of bytes that do not match their digests

ShardCache::Entry entry_of(const RemoteFolder& folder, const ShardSummary& shard) {
  return {ShardCache::entry_name(folder.address(), shard.head_digest), shard.size_bytes};
}

[[noreturn]] void throw_damaged(const ShardReader& reader, const std::vector<FileRange>& damaged) {
  throw Error(
      ErrorCode::corrupt,
      fmt::format("shard {}: {} ranges of it, the first at byte {}, do not match their digests in {} answers "
                  "of the server: upload the shard again",
                  quoted(reader.path()), damaged.size(), damaged.front().begin, kFetchAttempts));
}

// Tables of offsets and checksums have 8 bytes per sample each, and keys and labels some dozens.
std::uint64_t likely_head_bytes(const ShardSummary& shard) {
  constexpr std::uint64_t kJsonBytes = 16 * 1024;
  constexpr std::uint64_t kSampleBytes = 96;
  return kJsonBytes + std::min<std::uint64_t>(shard.samples, 1U << 16U) * kSampleBytes;
}

}  // namespace

bool DatasetPart::is_in(const ShardCache& cache) const {
  return remote_ && std::all_of(info_.shards.begin(), info_.shards.end(), [&](const ShardSummary& shard) {
           return cache.has(entry_of(*remote_, shard));
         });
}

std::string DatasetPart::storage_problem() const { return cache_ ? cache_->problem() : std::string(); }

std::shared_ptr<const DatasetPart> DatasetPart::with_storage(std::shared_ptr<const ShardCache> cache,
                                                             std::shared_ptr<const TransitArea> transit,
                                                             bool as_files) const {
  const std::shared_ptr<DatasetPart> part(new DatasetPart(path_, folder_));
  part->info_ = info_;
  part->remote_ = remote_;
  part->cache_ = std::move(cache);
  part->transit_ = std::move(transit);
  part->readers_ = std::vector<std::atomic<const ShardReader*>>(info_.shards.size());
  part->in_transit_ = std::vector<InTransit>(info_.shards.size());
  part->as_files_ = as_files;
  return part;
}

// A file that was changed since with_storage() is compared with its digests.
ShardReader DatasetPart::open_cached(const ShardSummary& shard) const {
  const ShardCache::Entry entry = entry_of(*remote_, shard);
  ShardReader reader = ShardReader::open_in(cache_->handle(), cache_->folder() / entry.name);
  const auto is_open = [&](const UniqueFd& fd) {
    return fd && file_identity(fd.get(), reader.path()) == reader.identity();
  };
  if (is_open(cache_->find(entry))) return reader;
  const UniqueFd file(reader.reopen(0));
  if (is_open(file) && reader.damaged_ranges(file.get()).empty()) return reader;
  throw Error(
      ErrorCode::corrupt,
      fmt::format(
          "{} in the cache was changed after this run found it there, and is damaged: start the run again, "
          "which fetches it",
          quoted(reader.path())));
}

// What is in the cache is used from the beginning, head and samples,
// and the server is asked for what is not right or not there any more.
ShardReader DatasetPart::open_remote(const ShardSummary& shard) const {
  const auto file = [&] {
    return std::make_unique<const RemoteFile>(remote_, shard.file, shard.size_bytes,
                                              likely_head_bytes(shard));
  };
  if (cache_) {
    const ShardCache::Entry entry = entry_of(*remote_, shard);
    try {
      if (const UniqueFd copy = cache_->find(entry)) {
        ShardReader reader = ShardReader::open_remote(file(), path_of(shard), copy.get());
        if (!shard_difference(reader, &shard, &info_)) {
          reader.adopt_named(copy.get(), cache_->handle(), entry.name, ShardReader::CopyState::proven);
          return reader;
        }
      }
    } catch (const Error& error) {
      using enum ErrorCode;
      if (error.code() != corrupt && error.code() != unsupported && error.code() != io) throw;
    }
  }
  return ShardReader::open_remote(file(), path_of(shard));
}

// Writes a shard to a file. Bytes that do not match their digests are requested again.
void DatasetPart::fetch(const ShardReader& reader, const ShardSummary& shard, int fd,
                        const std::stop_token& stop) const {
  const auto object = remote_->object(shard.file, shard.size_bytes);
  HttpClient& client = remote_->client();
  const std::span<const std::byte> head = reader.mapping();
  pwrite_all(fd, head, 0, reader.path());
  ArrivalProof proof(reader, head.size(), HttpClient::kPieceBytes);
  client.copy_to(*object, head.size(), shard.size_bytes - head.size(), fd, head.size(), stop,
                 [&](std::uint64_t offset, std::span<const std::byte> bytes) { proof.take(offset, bytes); });
  for (int attempt = 1;; ++attempt) {
    const std::vector<FileRange> damaged =
        reader.damaged_ranges(fd, [&](std::uint64_t number) { return proof.proven(number); });
    if (damaged.empty()) return;
    if (attempt == kFetchAttempts) throw_damaged(reader, damaged);
    for (const FileRange& range : damaged)
      client.copy_to(*object, range.begin, range.size_bytes, fd, range.begin, stop);
  }
}

bool DatasetPart::fetch_to_cache(std::uint32_t index, const std::stop_token& stop) const {
  const ShardReader& reader = shard(index);
  if (!reader.is_remote()) return true;
  if (!cache_) return false;
  const ShardTurns::Turn turn = turns_.wait(index, stop);
  if (in_transit_[index].users > 0) return false;  // what is in transit does not stay
  if (reader.has_samples()) return true;
  const ShardSummary& summary = info_.shards[index];
  const auto prove = [&](int fd) {
    if (const auto damaged = reader.damaged_ranges(fd); !damaged.empty()) throw_damaged(reader, damaged);
  };
  const std::optional<ShardCache::Copy> copy = cache_->get(
      entry_of(*remote_, summary), [&](int fd) { fetch(reader, summary, fd, stop); }, prove, stop);
  if (!copy) return false;
  using enum ShardReader::CopyState;
  reader.adopt_named(copy->fd.get(), cache_->handle(), entry_of(*remote_, summary).name,
                     copy->trusted ? proven : doubtful);
  return true;
}

bool DatasetPart::fetch_to_transit(std::uint32_t index, const std::stop_token& stop) const {
  const ShardReader& reader = shard(index);
  if (!reader.is_remote()) return true;
  if (!transit_) return reader.has_samples();
  const ShardTurns::Turn turn = turns_.wait(index, stop);
  InTransit& held = in_transit_[index];
  if (held.users > 0) {
    ++held.users;
    return true;
  }
  if (reader.has_samples()) return true;
  const ShardSummary& summary = info_.shards[index];
  const std::string name = entry_of(*remote_, summary).name;
  std::optional<TransitArea::File> file = transit_->get(
      name, summary.size_bytes, [&](int fd) { fetch(reader, summary, fd, stop); }, stop);
  if (!file) return false;
  try {
    if (reader.has_head(file->fd.get())) {
      using enum ShardReader::CopyState;
      reader.adopt(file->fd.get(), file->shared ? doubtful : proven);
      held = {1, std::move(*file)};
      return true;
    }
  } catch (...) {
    transit_->give_back(name, std::move(*file));
    throw;
  }
  transit_->give_back(name, std::move(*file));  // another program has written to it
  return false;
}

void DatasetPart::evict(std::uint32_t index) const {
  if (!transit_) return;
  const ShardTurns::Turn turn = turns_.wait(index, {});
  InTransit& held = in_transit_[index];
  if (held.users == 0 || --held.users > 0) return;
  shard(index).abandon();
  transit_->give_back(entry_of(*remote_, info_.shards[index]).name, std::move(held.file));
}

}  // namespace shard
