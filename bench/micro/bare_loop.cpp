// The loader called from a bare loop, with nothing measured inside it: what `shardbench load` and `tiers` are
// compared with.
//
//   bench_bare_loop DATASET [host|cuda] [SECONDS]      prints samples/s of batches of 256, shuffled
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "base/system/stopwatch.hpp"
#include "feeds/loader_arguments.hpp"

namespace {

int run(const std::string& folder, const std::string& name, double seconds) {
  const auto target = shard::bench::devices_of(name, 2)[0];
  const auto stream = target->create_stream();
  shard::Loader loader(shard::Dataset::open(folder), target, {});
  std::uint64_t samples = 0;
  std::uint64_t epoch = 0;
  const auto run_epoch = [&] {
    for (shard::Batch& batch : loader.epoch(epoch++)) {
      samples += batch.size();
      batch.wait_on(*stream);
      batch.release();
    }
  };
  for (std::uint64_t registered = 0;; registered = loader.stats().registered_bytes) {
    run_epoch();  // on a GPU shards are registered during the first epochs
    if (loader.stats().registered_bytes == registered) break;
  }
  stream->synchronize();
  samples = 0;
  const shard::Stopwatch watch;
  while (watch.seconds() < seconds) run_epoch();
  stream->synchronize();
  std::cout << static_cast<double>(samples) / watch.seconds() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_bare_loop DATASET [host|cuda] [SECONDS]\n";
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : "host", argc > 3 ? std::atof(argv[3]) : 3);
  } catch (const std::exception& error) {
    std::cerr << "bench_bare_loop: " << error.what() << '\n';
    return 1;
  }
}
