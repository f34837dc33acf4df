#include "limits/load_limits.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "base/unique_handle.hpp"
#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"

namespace shard::bench {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargeBlock = std::uint64_t{4} << 20U;
// What transport direct has with the kernel at most, and its threads where io_uring is refused.
constexpr std::uint64_t kMostRequests = 512;
constexpr unsigned kThreads = 32;
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
    const Stopwatch watch;
    for (int i = 0; i < copies; ++i) {
      for (Link& link : links) {
        const CopyItem item{link.target->data(), link.source->data(), kBlock};
        link.stream->copy({&item, 1});
      }
    }
    for (Link& link : links) link.stream->synchronize();
    seconds = watch.seconds();
  }
  return static_cast<double>(kBlock) * kCopies * static_cast<double>(links.size()) / seconds;
}

double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options) {
  const std::uint64_t size = dataset.info().spec.size_bytes();
  const std::uint64_t batch = options.batch_size;
  std::vector<std::uint64_t> shards;
  for (const ShardSummary& shard : dataset.info().shards) shards.push_back(shard.samples);
  const Order order(shards, options);
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
  const Stopwatch watch;
  for (std::uint64_t pass = 0; pass < passes; ++pass)
    for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  return static_cast<double>(passes * batches * batch * size) / watch.seconds();
}

DiskLimit::DiskLimit(const Dataset& dataset, const LoaderOptions& options) {
  const std::uint64_t sample = dataset.info().spec.size_bytes();
  const std::uint64_t batch = options.batch_size;
  // As transport direct: whole pages around a sample at any place; so many batches at once.
  const bool aligned = dataset.info().codec.kind == Codec::Kind::none && sample % kPage == 0;
  const std::uint64_t block = (sample + kPage - 1) / kPage * kPage + (aligned ? 0 : kPage);
  const std::uint64_t ahead = std::clamp<std::uint64_t>(options.readahead_bytes / (block * batch), 1,
                                                        std::uint64_t{options.prefetch} + 1);
  loader_ = {block, true, true, static_cast<unsigned>(std::min<std::uint64_t>(kMostRequests, ahead * batch))};
  try {
    make_uring_queue(1);
  } catch (const Error&) {  // then the loader reads by threads, too
    loader_.uring = false;
    loader_.depth = kThreads;
  }
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
    const ShardReader& shard = dataset.shard(i);
    if (shard.file_size_bytes() < std::max(kLargeBlock, block)) continue;
    files_.push_back(shard.path().string());
    sizes_.push_back(shard.file_size_bytes());
  }
}

double DiskLimit::as_loader() { return files_.empty() ? 0 : pass(loader_); }

double DiskLimit::fastest() {
  if (files_.empty()) return 0;
  if (fastest_.depth == 0) {
    constexpr std::uint64_t kBlock = std::uint64_t{1} << 20U;
    double best = -1;
    for (const Pattern& pattern : {Pattern{kBlock, false, true, 32}, Pattern{kBlock, false, true, 256},
                                   Pattern{kLargeBlock, false, true, 32}, Pattern{kBlock, false, false, 8},
                                   Pattern{kBlock, false, false, 32}, loader_}) {
      if (pattern.uring && !loader_.uring) continue;
      const double rate = pass(pattern);
      if (rate > best) fastest_ = pattern;
      best = std::max(best, rate);
    }
  }
  return pass(fastest_);
}

std::string DiskLimit::words(const Pattern& pattern) {
  return fmt::format("{}, blocks of {} KiB, {} {}", pattern.random ? "random places" : "in sequence",
                     pattern.block_bytes >> 10U, pattern.depth,
                     pattern.uring ? "requests of io_uring" : "threads");
}

double DiskLimit::pass(const Pattern& pattern) {
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
  std::vector<UniqueFd> descriptors;
  for (const std::string& file : files_)
    descriptors.emplace_back(::open(file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  const std::uint64_t rows = std::max<std::uint64_t>(2 * pattern.depth, kMemoryBytes / pattern.block_bytes);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kPage, rows * pattern.block_bytes), &std::free);
  std::memset(memory.get(), 0, rows * pattern.block_bytes);
  std::vector<ReadRequest> requests(rows);
  std::deque<ReadRequest*> idle;  // in turn: as in a ring
  for (std::uint64_t i = 0; i < rows; ++i) {
    requests[i].target = static_cast<std::byte*>(memory.get()) + i * pattern.block_bytes;
    requests[i].size_bytes = static_cast<std::uint32_t>(pattern.block_bytes);
    idle.push_back(&requests[i]);
  }
  const auto queue =
      pattern.uring ? make_uring_queue(std::bit_ceil(pattern.depth)) : make_thread_queue(pattern.depth);
  // Threads find the next request waiting.
  const std::size_t most = pattern.uring ? pattern.depth : std::size_t{2} * pattern.depth;
  std::uint64_t bytes = 0;
  std::size_t under_way = 0;
  const Stopwatch watch;
  try {
    for (std::size_t next = 0; next < places.size() || under_way > 0;) {
      for (; next < places.size() && under_way < most; ++next, ++under_way) {
        ReadRequest& request = *idle.front();
        idle.pop_front();
        request.descriptor = descriptors[places[next].file].get();
        request.offset = places[next].offset;
        queue->start(request);
      }
      queue->flush();
      ReadRequest& done = queue->next_done();
      --under_way;
      if (done.result > 0) bytes += static_cast<std::uint64_t>(done.result);
      idle.push_back(&done);
    }
  } catch (...) {
    queue->drain();
    throw;
  }
  return static_cast<double>(bytes) / watch.seconds();
}

}  // namespace shard::bench
