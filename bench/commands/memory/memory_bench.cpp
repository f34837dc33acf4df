#include "commands/memory/memory_bench.hpp"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include <fmt/core.h>

#include "harness/measure.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kMostBatch = 65'536;
constexpr double kSettles = 10;  // seconds

// Anonymous pages of this process; files that are mapped do not count.
std::uint64_t process_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10U;
  return 0;
}

// Blocks of a loader that has gone are given back to the system at once, so that the next one's count.
void give_memory_back() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);  // fixed: it would grow with what is freed
  ::malloc_trim(0);
#endif
}

LoaderOptions options_of(const MemoryBenchOptions& options, std::uint64_t batch) {
  LoaderOptions loader = options.loader;
  loader.order = OrderMode::shuffle;
  loader.tail = Tail::wrap;
  loader.batch_size = batch;
  loader.as_stored.insert("*");  // columns do not change what is measured
  return loader;
}

void measure(MemoryCase& one, const Dataset& dataset, const std::shared_ptr<Device>& device,
             const LoaderOptions& options, const std::atomic<bool>& cancel) {
  give_memory_back();
  one.free_before = device->free_memory_bytes();
  one.process_before = process_bytes();
  one.predicted = plan_memory(dataset, device->info(), options, one.free_before);
  Loader loader(dataset, device, options);
  const std::unique_ptr<Stream> stream = device->create_stream();
  const std::uint64_t least = 2 * (std::uint64_t{options.prefetch} + 1);
  const bool resident =
      options.transport == TransportKind::resident;  // its memory is all used after an epoch
  // Shards are registered while batches go on, and staging memory is given back after that.
  const Stopwatch watch;
  const auto settled = [&] {
    const LoaderStats stats = loader.stats();
    return (stats.registered_bytes >= one.predicted.registered_bytes &&
            stats.pinned_bytes <= one.predicted.pinned_bytes) ||
           watch.seconds() > kSettles;
  };
  const auto enough = [&] { return !resident && one.batches >= least && settled(); };
  for (std::uint64_t epoch = 0; one.batches < least || !settled(); ++epoch) {
    for (Batch& batch : loader.epoch(epoch)) {
      stop_when(cancel);
      batch.wait_on(*stream);
      batch.release();
      ++one.batches;
      if (enough()) break;
    }
  }
  stream->synchronize();
  one.free_after = device->free_memory_bytes();
  one.process_after = process_bytes();
  const LoaderStats stats = loader.stats();
  one.measured = {stats.device_bytes, stats.pinned_bytes, stats.registered_bytes, stats.transport};
  one.transport = stats.transport;
  one.reason = stats.reason;
}

}  // namespace

double difference(std::uint64_t predicted, std::uint64_t measured) noexcept {
  if (predicted == measured) return 0;
  if (predicted == 0) return 1;
  const auto a = static_cast<double>(predicted);
  const auto b = static_cast<double>(measured);
  return (a > b ? a - b : b - a) / a;
}

std::vector<MemoryCase> bench_memory(const Dataset& dataset, const std::shared_ptr<Device>& device,
                                     const MemoryBenchOptions& options, const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<MemoryCase>&)>& done) {
  for (const std::uint64_t batch : options.batch_sizes)
    if (batch < 1 || batch > kMostBatch)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--batch-sizes {}: expected 1 to {}", batch, kMostBatch));
  try {  // what the device loads at its first use does not count
    MemoryCase first;
    measure(first, dataset, device, options_of(options, 1), cancel);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::invalid_argument) throw;
  }
  std::vector<MemoryCase> cases;
  for (const std::uint64_t batch : options.batch_sizes) {
    MemoryCase& one = cases.emplace_back();
    one.batch_size = batch;
    attempt(one.problem, [&] { measure(one, dataset, device, options_of(options, batch), cancel); });
    done(cases);
  }
  return cases;
}

}  // namespace shard::bench
