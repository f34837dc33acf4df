// Loads epochs of a data set and prints, for each, a digest of what was delivered and what was fetched.
// For remote_loading.py.
//
//   remote_epochs PATH ORDER EPOCHS CACHE CACHE_BYTES [TRANSIT TRANSIT_BYTES [RANK WORLD_SIZE [step]]]
//
// ORDER: shuffle, windowed, sequential, by_shard; CACHE, TRANSIT "-": none. step: prints an empty line after
// each batch, and waits for one, so that ranks keep step with each other as in a training.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "base/digest/checksum.hpp"
#include "base/system/stopwatch.hpp"
#include "shard/loader/loader.hpp"

namespace {

using namespace shard;

void keep_step() {
  fmt::print("\n");
  std::fflush(stdout);
  static_cast<void>(std::getchar());
}

void run(const Dataset& data, const LoaderOptions& options, std::uint64_t epochs, bool in_step) {
  const Stopwatch watch;
  Loader loader(data, make_host_device(2), options);
  double first = 0;
  std::uint64_t before = 0;
  std::uint64_t held = 0;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    Xxh3Stream digest;
    for (Batch& batch : loader.epoch(epoch)) {
      batch.wait();
      held = std::max(held, loader.stats().transit_bytes);
      if (first == 0) first = watch.seconds();
      const TensorView images = batch.images();
      digest.update(std::as_bytes(std::span(batch.ids())));
      digest.update({images.data, static_cast<std::size_t>(images.size_bytes())});
      digest.update(std::as_bytes(batch.labels()));
      if (in_step) keep_step();
    }
    const LoaderStats stats = loader.stats();
    fmt::print(
        "{{\"epoch\": {}, \"digest\": \"{}\", \"fetched\": {}, \"requests\": {}, \"retries\": {}, "
        "\"first_batch\": {:.3f}, "
        "\"seconds\": {:.3f}, \"waited\": {:.3f}, \"passed\": {}, \"held\": {}, \"transport\": \"{}\", "
        "\"problem\": {}}}\n",
        epoch, to_hex(digest.digest()), stats.fetched_bytes - before, stats.requests, stats.retries, first,
        watch.seconds(), stats.fetch_seconds, stats.passed_bytes, held, to_string(stats.transport),
        !stats.storage_problem.empty());
    if (!stats.storage_problem.empty()) fmt::print(stderr, "{}\n", stats.storage_problem);
    std::fflush(stdout);
    before = stats.fetched_bytes;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  try {
    const std::string order = argv[2];
    LoaderOptions options;
    options.batch_size = 16;
    options.tail = Tail::short_;
    options.seed = 7;
    options.window_shards = 2;
    options.order = order == "shuffle"    ? OrderMode::shuffle
                    : order == "windowed" ? OrderMode::windowed
                    : order == "by_shard" ? OrderMode::shuffle
                                          : OrderMode::sequential;
    if (order == "by_shard") options.partition = Partition::by_shard;
    const auto number = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
    if (std::string(argv[4]) != "-") options.remote.cache = argv[4];
    options.remote.cache_bytes = number(5);
    if (argc >= 8 && std::string(argv[6]) != "-") options.remote.transit = argv[6];
    if (argc >= 8) options.remote.transit_bytes = number(7);
    if (argc >= 10) {
      options.rank = static_cast<std::uint32_t>(number(8));
      options.world_size = static_cast<std::uint32_t>(number(9));
    }
    const bool in_step = argc >= 11;
    if (in_step) options.batch_size = options.prefetch = 1;  // by more, a rank would be windows ahead
    run(Dataset::open(argv[1]), options, number(3), in_step);
  } catch (const std::exception& error) {
    fmt::print(stderr, "remote_epochs: {}\n", error.what());
    return 1;
  }
  return 0;
}
