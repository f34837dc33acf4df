#include "load_limits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace shard::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr std::uint64_t kSector = 512;
constexpr std::uint64_t kMemoryBytes = std::uint64_t{192} << 20U;
constexpr std::uint64_t kPassBytes = std::uint64_t{2} << 30U;

std::uint64_t mixed(std::uint64_t x) {
  x = (x + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  return x ^ (x >> 27U);
}

}  // namespace

double link_limit(std::span<const std::shared_ptr<Device>> devices) {
  constexpr std::uint64_t kBlock = std::uint64_t{256} << 20U;
  constexpr int kCopies = 16;
  struct Link {
    std::unique_ptr<Block> source;
    std::unique_ptr<Block> target;
    std::unique_ptr<Stream> stream;
  };
  std::vector<Link> links;
  for (const auto& device : devices) {
    links.push_back(
        {device->allocate_pinned(kBlock), device->allocate_device(kBlock), device->create_stream()});
    std::memset(links.back().source->data(), 0x5A, kBlock);
  }
  double seconds = 0;
  for (const int copies : {1, kCopies}) {  // the first one warms up
    const auto begin = Clock::now();
    for (int i = 0; i < copies; ++i) {
      for (Link& link : links) {
        const CopyItem item{link.target->data(), link.source->data(), kBlock};
        link.stream->copy({&item, 1});
      }
    }
    for (Link& link : links) link.stream->synchronize();
    seconds = seconds_since(begin);
  }
  return static_cast<double>(kBlock) * kCopies * static_cast<double>(links.size()) / seconds;
}

double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options) {
  const std::uint64_t size = dataset.info().spec.size_bytes();
  const std::uint64_t batch = options.order.batch_size;
  std::vector<std::uint64_t> shards;
  for (const ShardSummary& shard : dataset.info().shards) shards.push_back(shard.samples);
  const Order order(shards, options.order);
  std::vector<std::unique_ptr<Block>> ring;
  for (std::uint32_t i = 0; i < options.prefetch + 1; ++i)
    ring.push_back(device.allocate_device(size * batch));
  constexpr std::uint64_t kBatches = 200;  // at least: fewer are over before they can be timed
  const std::uint64_t batches = std::min<std::uint64_t>(order.batches(), kBatches);
  const std::uint64_t passes = (kBatches + batches - 1) / batches;
  std::vector<std::vector<CopyItem>> work(batches);
  BatchIndices indices;
  for (std::uint64_t b = 0; b < batches; ++b) {
    order.batch(0, b, indices);
    for (std::uint64_t i = 0; i < batch; ++i) {
      const Dataset::Location at = dataset.locate(indices.samples[i]);
      const std::span<const std::byte> frame = dataset.shard(at.shard).frame(at.sample);
      work[b].push_back({ring[b % ring.size()]->data() + i * size, frame.data(),
                         std::min<std::uint64_t>(frame.size(), size)});
    }
  }
  const auto stream = device.create_stream();
  for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  const auto begin = Clock::now();
  for (std::uint64_t pass = 0; pass < passes; ++pass)
    for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  return static_cast<double>(passes * batches * batch * size) / seconds_since(begin);
}

DiskLimit::DiskLimit(const Dataset& dataset) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20U;
  sequential_.block_bytes = kBlock;
  random_.block_bytes = (dataset.info().spec.size_bytes() + kSector - 1) / kSector * kSector;
  random_.random = true;
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
    const ShardReader& shard = dataset.shard(i);
    if (shard.file_size_bytes() < std::max(kBlock, random_.block_bytes)) continue;
    files_.push_back(shard.path().string());
    sizes_.push_back(shard.file_size_bytes());
  }
}

double DiskLimit::sequential() { return measure(sequential_); }
double DiskLimit::random() { return measure(random_); }

double DiskLimit::measure(Pattern& pattern) {
  if (files_.empty()) return 0;
  if (pattern.threads == 0) {
    double best = -1;
    for (const unsigned threads : {8U, 32U, 128U}) {
      const double rate = pass(pattern, threads);
      if (rate > best) pattern.threads = threads;
      best = std::max(best, rate);
    }
  }
  return pass(pattern, pattern.threads);
}

double DiskLimit::pass(const Pattern& pattern, unsigned threads) {
  struct Place {
    std::size_t file;
    std::uint64_t offset;
  };
  std::vector<Place> places;
  std::uint64_t all = 0;
  for (const std::uint64_t size : sizes_) all += size / pattern.block_bytes;
  const std::uint64_t blocks = std::min(all, kPassBytes / pattern.block_bytes);
  for (std::uint64_t i = 0; i < blocks; ++i, ++at_) {
    std::uint64_t block = (pattern.random ? mixed(at_) : at_) % all;
    std::size_t file = 0;
    for (; block >= sizes_[file] / pattern.block_bytes; ++file) block -= sizes_[file] / pattern.block_bytes;
    places.push_back({file, block * pattern.block_bytes});
  }
  std::vector<int> descriptors;
  for (const std::string& file : files_)
    descriptors.push_back(::open(file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  const std::uint64_t pitch = (pattern.block_bytes + 4095) / 4096 * 4096;
  const std::uint64_t rows = std::max<std::uint64_t>(threads, kMemoryBytes / pitch);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, rows * pitch),
                                                           &std::free);
  std::memset(memory.get(), 0, rows * pitch);
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> bytes{0};
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (unsigned t = 0; t < threads; ++t) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < places.size(); i = next++) {
          const ssize_t got =
              ::pread(descriptors[places[i].file], static_cast<std::byte*>(memory.get()) + i % rows * pitch,
                      pattern.block_bytes, static_cast<off_t>(places[i].offset));
          if (got > 0) bytes += static_cast<std::uint64_t>(got);
        }
      });
    }
  }
  const double rate = static_cast<double>(bytes) / seconds_since(begin);
  for (const int descriptor : descriptors)
    if (descriptor >= 0) ::close(descriptor);
  return rate;
}

}  // namespace shard::bench
