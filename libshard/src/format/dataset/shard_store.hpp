// ShardStore: whole shards of a data set on servers, on this machine: in a cache, which keeps them, or in a
// transit area, which they leave again (docs/remote.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <utility>

#include "shard/dataset.hpp"

namespace shard {

struct ShardFolders {
  // Processes of a node may share it, and nothing is removed from it. No cache if empty.
  std::filesystem::path cache{};
  std::uint64_t cache_bytes = ~std::uint64_t{0};  // of its files at most
  std::uint64_t cache_spare_bytes = 0;            // what the cache leaves free on its disk
  // No transit area if empty.
  std::filesystem::path transit{};
  bool transit_shared = false;  // processes of the node use each other's shards there
};

// A cheap handle to the shards of a Dataset. Thread safe.
class ShardStore {
 public:
  // The same samples, with shards in these folders, which are made if they are missing. Errors: io.
  static Dataset with_folders(const Dataset& data, const ShardFolders& folders);

  // `data`: with_folders(). Without, nothing is stored.
  explicit ShardStore(Dataset data) : data_(std::move(data)) {}

  // Errors of these three: those of Dataset::shard(); cancelled.
  //
  // Fetches a shard into the cache, or waits for the process that does. From then on its samples are read
  // from there. Returns false if there is no cache or no room, so that its samples come from the server.
  // Returns true at once if the shard is a file.
  bool fetch_to_cache(std::uint32_t shard, const std::stop_token& stop = {}) const;
  // The same with the transit area, until evict().
  bool fetch_to_transit(std::uint32_t shard, const std::stop_token& stop = {}) const;
  // Ends fetch_to_transit(): samples of the shard come from the server again, and its file is removed unless
  // another process needs it.
  void evict(std::uint32_t shard) const;

  // The first thing that kept a shard out of the cache, and what to do. Empty if nothing did, or only a lack
  // of room or of write permission.
  std::string problem() const;

  // What all servers of the data set have sent: bodies in bytes, requests, and how many were repeated.
  struct Traffic {
    std::uint64_t bytes = 0;
    std::uint64_t requests = 0;
    std::uint64_t retries = 0;
  };
  Traffic traffic() const;

 private:
  Dataset data_;
};

}  // namespace shard
