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

double disk_rate(const std::vector<std::string>& files, unsigned threads, std::uint64_t at_most) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20U;
  struct Part {
    const std::string* file;
    std::uint64_t offset;
  };
  std::vector<Part> parts;
  for (const std::string& file : files) {
    const std::uint64_t size = std::filesystem::file_size(file);
    for (std::uint64_t at = 0; at + kBlock <= size && parts.size() * kBlock < at_most; at += kBlock)
      parts.push_back({&file, at});
  }
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> bytes{0};
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (unsigned t = 0; t < threads; ++t) {
      workers.emplace_back([&] {
        const std::unique_ptr<void, decltype(&std::free)> buffer(std::aligned_alloc(4096, kBlock),
                                                                 &std::free);
        const std::string* open_file = nullptr;
        int descriptor = -1;
        for (std::size_t i = next++; i < parts.size(); i = next++) {
          if (parts[i].file != open_file) {
            if (descriptor >= 0) ::close(descriptor);
            open_file = parts[i].file;
            descriptor = ::open(open_file->c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
          }
          const ssize_t got = ::pread(descriptor, buffer.get(), kBlock, static_cast<off_t>(parts[i].offset));
          if (got > 0) bytes += static_cast<std::uint64_t>(got);
        }
        if (descriptor >= 0) ::close(descriptor);
      });
    }
  }
  return static_cast<double>(bytes) / seconds_since(begin);
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
  const std::uint64_t batches = std::min<std::uint64_t>(order.batches(), 200);
  std::vector<std::vector<CopyItem>> work(batches);
  BatchIndices indices;
  for (std::uint64_t b = 0; b < batches; ++b) {
    order.batch(0, b, indices);
    for (std::uint64_t i = 0; i < batch; ++i) {
      const Dataset::Location at = dataset.locate(indices.samples[i]);
      work[b].push_back(
          {ring[b % ring.size()]->data() + i * size, dataset.shard(at.shard).frame(at.sample).data(), size});
    }
  }
  const auto stream = device.create_stream();
  for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  const auto begin = Clock::now();
  for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  return static_cast<double>(batches * batch * size) / seconds_since(begin);
}

double disk_limit(const Dataset& dataset) {
  constexpr std::uint64_t kAtMost = std::uint64_t{4} << 30U;
  std::vector<std::string> files;
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i)
    files.push_back(dataset.shard(i).path().string());
  double best = 0;
  for (const unsigned threads : {8U, 32U, 64U}) best = std::max(best, disk_rate(files, threads, kAtMost));
  return best;
}

}  // namespace shard::bench
