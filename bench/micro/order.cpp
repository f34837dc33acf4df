// bench_order [SAMPLES [BATCH [SECONDS]]]: what a batch's indices cost (default 10^9 samples, batches of
// 256): microseconds for a batch (the median; batches at random places), and the memory of the order. Weights
// are of at most 10^8 samples.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/digest/mix64.hpp"
#include "base/system/stopwatch.hpp"
#include "shard/error.hpp"
#include "shard/loader/order.hpp"

namespace {

using namespace shard;

std::uint64_t allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Kind {
  const char* name;
  std::uint64_t samples;
  std::function<void(OrderOptions&)> set;
};

void measure(const Kind& kind, std::uint64_t batch_size, double seconds) {
  const std::uint64_t before = allocated_bytes();
  OrderOptions options;
  options.batch_size = batch_size;
  options.seed = 1;
  kind.set(options);
  const std::uint64_t per_shard = 10'000;
  std::vector<std::uint64_t> shards(kind.samples / per_shard, per_shard);
  if (kind.samples % per_shard != 0) shards.push_back(kind.samples % per_shard);
  const Order order(shards, options);
  BatchIndices batch;
  order.batch(0, 0, batch);  // a table of the epoch, where there is one
  const std::uint64_t memory = allocated_bytes() - before - shards.capacity() * sizeof(std::uint64_t);
  std::vector<double> times;
  const Stopwatch all;
  for (std::uint64_t i = 0; all.seconds() < seconds; ++i) {
    const Stopwatch one;
    order.batch(0, mix64(i) % order.batches(), batch);
    times.push_back(one.seconds());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  std::printf("%-28s %13llu samples  %8.1f us a batch  %14llu bytes  %6.2f a sample\n", kind.name,
              static_cast<unsigned long long>(kind.samples), times[times.size() / 2] * 1e6,
              static_cast<unsigned long long>(memory),
              static_cast<double>(memory) / static_cast<double>(kind.samples));
  std::fflush(stdout);
}

std::vector<Sampling::Part> parts(std::uint64_t samples, std::uint64_t count) {
  std::vector<Sampling::Part> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back({samples / count, static_cast<double>(1 + i % 7)});
  all.back().samples += samples % count;
  return all;
}

int run(int argc, char** argv) {
  const auto number = [&](int at, std::uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  const std::uint64_t n = number(1, 1'000'000'000);
  const std::uint64_t batch_size = number(2, 256);
  const double seconds = argc > 3 ? std::atof(argv[3]) : 1.0;
  const std::uint64_t weighted = std::min<std::uint64_t>(n, 100'000'000);
  const std::uint64_t listed = std::min<std::uint64_t>(n, 10'000'000);
  const auto weights = [&](std::uint64_t of) {
    std::vector<double> all(of);
    for (std::uint64_t i = 0; i < of; ++i) all[i] = static_cast<double>(mix64(i) % 1000);
    return all;
  };
  const Kind kinds[] = {
      {"shuffle", n, [](OrderOptions&) {}},
      {"shuffle, longer epoch", n, [&](OrderOptions& o) { o.samples_per_epoch = 2 * n; }},
      {"repeats 4", n, [](OrderOptions& o) { o.repeats = 4; }},
      {"with replacement", n, [&](OrderOptions& o) { o.sampling = Sampling::uniform(n, true); }},
      {"mix of 2", n, [&](OrderOptions& o) { o.sampling = Sampling::mix(parts(n, 2)); }},
      {"mix of 100", n, [&](OrderOptions& o) { o.sampling = Sampling::mix(parts(n, 100)); }},
      {"1000 classes in a row", n, [&](OrderOptions& o) { o.sampling = Sampling::mix(parts(n, 1000)); }},
      {"1000 classes in no order", listed,
       [&](OrderOptions& o) {
         std::vector<std::uint32_t> classes(listed);
         for (std::uint64_t i = 0; i < listed; ++i) classes[i] = static_cast<std::uint32_t>(mix64(i) % 1000);
         o.sampling = Sampling::grouped(classes, std::vector<double>(1000, 1.0));
       }},
      {"weights", weighted, [&](OrderOptions& o) { o.sampling = Sampling::weighted(weights(weighted)); }},
      {"weights, no replacement", listed,
       [&](OrderOptions& o) {
         o.sampling = Sampling::weighted(weights(listed), false);
         o.samples_per_epoch = listed / 2;
       }},
  };
  for (const Kind& kind : kinds) measure(kind, batch_size, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_order: %s\n", error.what());
    return 1;
  }
}
