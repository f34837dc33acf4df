#include "limits/network.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>

#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "base/unique_handle.hpp"
#include "shard/remote_copy.hpp"

namespace shard::bench {
namespace {

constexpr unsigned kShardsAtOnce = 8;  // so that the end of one is no pause
constexpr std::uint64_t kStepBytes = std::uint64_t{64} << 20U;

}  // namespace

double network_rate(const std::filesystem::path& folder, const DatasetInfo& info, double seconds) {
  RemoteCopy copy(folder.string());
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::atomic<std::uint64_t> copied{0};
  const Stopwatch watch;
  parallel_for(kShardsAtOnce, info.shards.size(), [&](unsigned, std::uint64_t i) {
    if (watch.seconds() >= seconds) return;
    const ShardSummary& shard = info.shards[i];
    for (std::uint64_t at = 0; at < shard.size_bytes && watch.seconds() < seconds;) {
      const std::uint64_t step = std::min(kStepBytes, shard.size_bytes - at);
      copy.copy_to(nowhere.get(), shard.file, shard.size_bytes, at, step);
      copied += step;
      at += step;
    }
  });
  return static_cast<double>(copied) / watch.seconds();
}

}  // namespace shard::bench
