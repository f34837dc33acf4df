// DatasetPart: a folder of shards, or a shard file alone, as it was opened; here or on a server.
// A Dataset consists of such parts.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "format/dataset/shard_turns.hpp"
#include "remote/cache/transit_area.hpp"
#include "shard/dataset.hpp"

namespace shard {

class HoldingFile;
class HttpClient;
class RemoteFolder;
class ShardCache;
class UnconvertedSet;

// Thread safe, also in a child after fork().
class DatasetPart {
 public:
  // Errors: as Dataset::open().
  static std::shared_ptr<const DatasetPart> open(const std::filesystem::path& path);
  // Images that are not converted. `path` is their place, for messages.
  static std::shared_ptr<const DatasetPart> of_images(std::filesystem::path path,
                                                      std::shared_ptr<const UnconvertedSet> images);
  // All samples of a part.
  static Dataset whole(std::shared_ptr<const DatasetPart> part);
  DatasetPart(const DatasetPart&) = delete;
  DatasetPart& operator=(const DatasetPart&) = delete;
  ~DatasetPart();

  // As it was given to open(): the folder, or the shard file.
  const std::filesystem::path& path() const noexcept { return path_; }
  const std::filesystem::path& folder() const noexcept { return folder_; }
  bool is_lone_shard() const noexcept { return path_ != folder_; }
  // What dataset.json says, or the header of the shard file.
  const DatasetInfo& info() const noexcept { return info_; }

  bool is_unconverted() const noexcept { return images_ != nullptr; }
  // UnconvertedSet::with_frames(). Null also of other parts.
  std::shared_ptr<const DatasetPart> with_frames() const;
  // UnconvertedSet::holding_files(). None of other parts.
  std::vector<const HoldingFile*> holding_files() const;
  // On a server, and its shards are not read as files of the cache.
  bool is_remote() const noexcept { return remote_ != nullptr && !as_files_; }
  // The client of its server; null: a local folder.
  const HttpClient* client() const noexcept;
  // On a server, and all shards are in the cache, proven.
  bool is_in(const ShardCache& cache) const;
  // The same part of a server, with shards in `cache` and `transit`, of which either may be null. `as_files`:
  // all are in the cache, and are read like those of a folder. Else the server is asked for what is not
  // there, or not right.
  std::shared_ptr<const DatasetPart> with_storage(std::shared_ptr<const ShardCache> cache,
                                                  std::shared_ptr<const TransitArea> transit,
                                                  bool as_files) const;
  // The cache's, ShardCache::problem().
  std::string storage_problem() const;
  // See ShardStore.
  bool fetch_to_cache(std::uint32_t index, const std::stop_token& stop) const;
  bool fetch_to_transit(std::uint32_t index, const std::stop_token& stop) const;
  void evict(std::uint32_t index) const;

  // The path or address of a shard.
  std::filesystem::path path_of(const ShardSummary& shard) const;
  // A file beside the shards. Errors: not_found, io, resource (it has more than `max_bytes`).
  std::vector<std::byte> read_document(const std::string& name, std::uint64_t max_bytes) const;

  // `index` < info().shards.size(). See Dataset::shard() and Dataset::opened().
  const ShardReader& shard(std::uint32_t index) const;
  const ShardReader* opened(std::uint32_t index) const noexcept {
    return readers_[index].load(std::memory_order_acquire);
  }

 private:
  DatasetPart(std::filesystem::path path, std::filesystem::path folder);
  void open_folder();
  void open_shard();
  void open_remote();
  DatasetInfo read_info() const;
  ShardReader open_cached(const ShardSummary& shard) const;
  ShardReader open_remote(const ShardSummary& shard) const;
  void fetch(const ShardReader& reader, const ShardSummary& shard, int fd, const std::stop_token& stop) const;
  bool was_moved() const noexcept;
  void check_match(const ShardReader& reader, const ShardSummary& expected) const;
  ShardReader open_reader(std::uint32_t index) const;

  // A data set may have this part twice, so the same shard may be in use twice.
  struct InTransit {
    std::uint32_t users = 0;
    TransitArea::File file{};
  };

  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::shared_ptr<const UnconvertedSet> images_;  // null: shards are files
  std::shared_ptr<const RemoteFolder> remote_;    // null: local
  std::shared_ptr<const ShardCache> cache_;       // null: none
  std::shared_ptr<const TransitArea> transit_;    // null: none
  mutable ShardTurns turns_;
  mutable std::vector<InTransit> in_transit_;  // of each shard, by whoever has its turn
  bool as_files_ = false;
  std::shared_ptr<const UniqueFd> handle_;  // of the folder: shards are looked up from it
  DatasetInfo info_;
  // The open shards; null: not open. Several threads may open the same one, and the first to store it wins.
  // There is no lock, which a forked child could find locked for ever.
  mutable std::vector<std::atomic<const ShardReader*>> readers_;
};

}  // namespace shard
