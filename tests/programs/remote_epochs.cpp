// Loads epochs of a data set and prints, for each, a digest of what was delivered and what was fetched. For remote_loading.py.
//
//   remote_epochs PATH ORDER EPOCHS CACHE CACHE_BYTES        ORDER: shuffle, windowed, sequential; CACHE "-": none
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "base/checksum.hpp"
#include "base/stopwatch.hpp"
#include "shard/loader/loader.hpp"

namespace {

using namespace shard;

void run(const Dataset& data, const LoaderOptions& options, std::uint64_t epochs) {
  const Stopwatch watch;
  Loader loader(data, make_host_device(2), options);
  double first = 0;
  std::uint64_t before = 0;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    Xxh3Stream digest;
    for (Batch& batch : loader.epoch(epoch)) {
      batch.wait();
      if (first == 0) first = watch.seconds();
      const TensorView images = batch.images();
      digest.update(std::as_bytes(std::span(batch.ids())));
      digest.update({images.data, static_cast<std::size_t>(images.size_bytes())});
      digest.update(std::as_bytes(batch.labels()));
    }
    const LoaderStats stats = loader.stats();
    fmt::print(
        "{{\"epoch\": {}, \"digest\": \"{}\", \"fetched\": {}, \"requests\": {}, \"retries\": {}, "
        "\"first_batch\": {:.3f}, "
        "\"seconds\": {:.3f}, \"waited\": {:.3f}, \"transport\": \"{}\"}}\n",
        epoch, to_hex(digest.digest()), stats.fetched_bytes - before, stats.requests, stats.retries, first,
        watch.seconds(), stats.fetch_seconds, to_string(stats.transport));
    std::fflush(stdout);
    before = stats.fetched_bytes;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    const std::string order = argv[2];
    LoaderOptions options;
    options.batch_size = 16;
    options.tail = Tail::short_;
    options.seed = 7;
    options.window_shards = 2;
    options.order = order == "shuffle"    ? OrderMode::shuffle
                    : order == "windowed" ? OrderMode::windowed
                                          : OrderMode::sequential;
    if (std::string(argv[4]) != "-") options.cache = argv[4];
    options.cache_bytes = std::strtoull(argv[5], nullptr, 10);
    run(Dataset::open(argv[1]), options, std::strtoull(argv[3], nullptr, 10));
  } catch (const std::exception& error) {
    fmt::print(stderr, "remote_epochs: {}\n", error.what());
    return 1;
  }
  return 0;
}
