#include "setup/remote_storage.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files/file_io.hpp"
#include "format/dataset/shard_store.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kDiskParts = 4;    // of which the transit area takes one
constexpr std::uint64_t kLeastShards = 8;  // where an order has no windows

// Two windows: one is read while the next one arrives.
std::uint64_t bytes_of_two_windows(const DatasetInfo& info, const LoaderOptions& options) {
  std::uint64_t largest = 0;
  for (const ShardSummary& shard : info.shards) largest = std::max(largest, shard.size_bytes);
  const std::uint64_t window =
      options.order == OrderMode::windowed ? std::uint64_t{options.window_shards} : kLeastShards / 2;
  return 2 * std::min<std::uint64_t>(window, info.shards.size()) * largest;
}

// `folder`: absolute. It may be missing.
std::uint64_t default_transit_bytes(const DatasetInfo& info, const LoaderOptions& options,
                                    const std::filesystem::path& folder) {
  const std::uint64_t wanted = bytes_of_two_windows(info, options);
  std::error_code error;
  const bool exists = std::filesystem::exists(folder, error);
  const std::filesystem::space_info disk =
      std::filesystem::space(exists ? folder : folder.parent_path(), error);
  return error ? wanted : std::min<std::uint64_t>(wanted, disk.capacity / kDiskParts);
}

}  // namespace

Dataset with_storage(Dataset data, LoaderOptions& options) {
  const bool uses_transit = data.is_remote() && walks_shards(options);
  if (!uses_transit) options.remote.transit_bytes = 0;
  if (!data.is_remote() || (options.remote.cache.empty() && !uses_transit)) return data;
  ShardFolders folders;
  folders.cache = options.remote.cache;
  if (options.remote.cache_bytes != 0) folders.cache_bytes = options.remote.cache_bytes;
  if (uses_transit) {
    const bool named = !options.remote.transit.empty() || !options.remote.cache.empty();
    folders.transit = !options.remote.transit.empty() ? options.remote.transit
                      : named                         ? options.remote.cache
                                                      : temporary_folder();
    folders.transit_shared = named && options.world_size > 1 && options.partition == Partition::global;
    if (options.remote.transit_bytes == 0)
      options.remote.transit_bytes = default_transit_bytes(data.info(), options, absolute(folders.transit));
  }
  if (folders.transit == folders.cache) folders.cache_spare_bytes = options.remote.transit_bytes;
  return ShardStore::with_folders(data, folders);
}

}  // namespace shard
