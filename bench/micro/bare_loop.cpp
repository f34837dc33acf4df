// The loader called from a bare loop, with nothing measured inside it: what `shardbench load` and `tiers` are
// held against.
//
//   bench_bare_loop DATASET [host|cuda] [SECONDS]      prints samples/s of batches of 256, shuffled
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "shard/loader/loader.hpp"
#ifdef SHARD_WITH_CUDA
#include "shard/loader/cuda_device.hpp"
#endif

namespace {

std::shared_ptr<shard::Device> device(const std::string& name) {
#ifdef SHARD_WITH_CUDA
  if (name == "cuda") return shard::make_cuda_device(0);
#endif
  if (name != "host") throw std::invalid_argument("no such device in this build: " + name);
  return shard::make_host_device(2);
}

int run(const std::string& folder, const std::string& name, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto target = device(name);
  const auto stream = target->create_stream();
  shard::Loader loader(std::make_shared<const shard::Dataset>(shard::Dataset::open(folder)), target, {});
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
  const auto begin = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  while (passed() < seconds) run_epoch();
  stream->synchronize();
  std::cout << static_cast<double>(samples) / passed() << '\n';
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
