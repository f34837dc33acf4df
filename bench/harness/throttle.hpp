// Emulates a storage device: real reads are delayed until the modelled device would have delivered.
//
//   request -> waits for one of `depth` channels
//           -> latency, unless it continues where a request has just ended
//           -> its bytes pass the one link at `bandwidth` -> delivered
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

namespace shard::bench {

struct EmulatedTier {
  std::string name;  // "hdd", or the text itself
  double bytes_per_second = 0;
  double latency_seconds = 0;       // of a request that does not continue where another one ended
  unsigned depth = 32;              // latencies that pass at the same time
  std::string description() const;  // "200 MB/s, 8 ms, 1 at a time"
};

// "hdd", "sata", "nvme", "nfs", "http", or "bw=150MB/s,lat=8ms" with ",depth=N" if wanted. Throws
// invalid_argument.
EmulatedTier parse_emulated(const std::string& text);

class Throttle {  // thread safe
 public:
  using Clock = std::chrono::steady_clock;
  explicit Throttle(EmulatedTier tier);
  // Waits until the device would have delivered bytes [offset, offset + size_bytes) of file `file`.
  void pass(std::uint64_t file, std::uint64_t offset, std::uint64_t size_bytes);
  // When a request that comes at `now` would be delivered. Does not wait.
  Clock::time_point due(std::uint64_t file, std::uint64_t offset, std::uint64_t size_bytes,
                        Clock::time_point now);

 private:
  EmulatedTier tier_;
  std::mutex mutex_;
  std::priority_queue<Clock::time_point, std::vector<Clock::time_point>, std::greater<>> channels_;
  Clock::time_point link_free_;
  std::uint64_t file_ = ~std::uint64_t{0};
  std::uint64_t end_ = 0;  // of the request furthest ahead in file_
};

}  // namespace shard::bench
