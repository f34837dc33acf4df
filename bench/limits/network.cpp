#include "limits/network.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"
#include "remote/s3/remote_folder.hpp"

namespace shard::bench {
namespace {

constexpr unsigned kShardsAtOnce = 8;  // so that the end of one is no pause

}  // namespace

double network_rate(const std::filesystem::path& folder, const DatasetInfo& info, double seconds) {
  const auto opened = RemoteFolder::open(folder.string());
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  HttpClient client;  // not that of the folder, whose counts are the loader's
  const Stopwatch watch;
  parallel_for(kShardsAtOnce, info.shards.size(), [&](unsigned, std::uint64_t i) {
    if (watch.seconds() >= seconds) return;
    const ShardSummary& shard = info.shards[i];
    const auto object = opened->object(shard.file, shard.size_bytes);
    for (std::uint64_t at = 0; at < shard.size_bytes && watch.seconds() < seconds;) {
      const std::uint64_t step = std::min(8 * HttpClient::kPieceBytes, shard.size_bytes - at);
      client.copy_to(*object, at, step, nowhere.get(), 0);
      at += step;
    }
  });
  return static_cast<double>(client.stats().bytes) / watch.seconds();
}

}  // namespace shard::bench
