#include "limits/load_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"

namespace shard::bench {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargeBlock = std::uint64_t{4} << 20U;
// What transport direct has with the kernel at most, and its threads where io_uring is refused.
constexpr std::uint64_t kMostRequests = 512;
constexpr unsigned kThreads = 32;

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

std::uint64_t mean_sample_bytes(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  if (!info.spec.is_free()) return info.spec.size_bytes();
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < info.shards.size(); ++i) {
    const ShardReader& shard = dataset.shard(i);
    for (std::uint64_t sample = 0; sample < shard.size(); ++sample)
      bytes += shard.images().spec_of(sample).size_bytes();
  }
  return bytes / std::max<std::uint64_t>(info.samples(), 1);
}

double mean_frame_bytes(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  if (!info.codec.framed(info.spec)) return 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < info.shards.size(); ++i) {
    const ShardHeader& header = dataset.shard(i).header();
    bytes += header.images_end - header.images_begin;
  }
  return static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(info.samples(), 1));
}

double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options) {
  const DatasetInfo& info = dataset.info();
  const std::uint64_t size = info.spec.size_bytes();  // 0: each has its own
  const std::uint64_t batch = options.batch_size;
  std::vector<std::uint64_t> shards;
  for (const ShardSummary& shard : info.shards) shards.push_back(shard.samples);
  const Order order(shards, options);
  constexpr std::uint64_t kBatches = 200;  // at least: fewer are over before they can be timed
  const std::uint64_t batches = std::min<std::uint64_t>(order.batches(), kBatches);
  const std::uint64_t passes = (kBatches + batches - 1) / batches;
  std::vector<std::vector<CopyItem>> work(batches);  // targets: offsets, at first
  std::uint64_t most = 0;
  std::uint64_t decoded = 0;
  BatchIndices indices;
  for (std::uint64_t b = 0; b < batches; ++b) {
    order.batch(0, b, indices);
    std::uint64_t used = 0;
    for (std::uint64_t i = 0; i < batch; ++i) {
      const Dataset::Location at = dataset.locate(indices.samples[i]);
      const StoredImages& images = dataset.shard(at.shard).images();
      const std::span<const std::byte> frame = images.frame(at.sample);
      const std::uint64_t bytes = size != 0 ? std::min<std::uint64_t>(frame.size(), size) : frame.size();
      work[b].push_back({reinterpret_cast<std::byte*>(used), frame.data(), bytes});
      used += size != 0 ? size : bytes;
      decoded += size != 0 ? size : images.spec_of(at.sample).size_bytes();
    }
    most = std::max(most, used);
  }
  std::vector<std::unique_ptr<Block>> ring;
  for (std::uint32_t i = 0; i < options.prefetch + 1; ++i) ring.push_back(device.allocate_device(most));
  for (std::uint64_t b = 0; b < batches; ++b)
    for (CopyItem& item : work[b])
      item.target = ring[b % ring.size()]->data() + reinterpret_cast<std::uintptr_t>(item.target);
  const auto stream = device.create_stream();
  for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  const Stopwatch watch;
  for (std::uint64_t pass = 0; pass < passes; ++pass)
    for (const auto& items : work) stream->copy(items);
  stream->synchronize();
  return static_cast<double>(passes * decoded) / watch.seconds();
}

DiskLimit::DiskLimit(const Dataset& dataset, const LoaderOptions& options) {
  const bool framed = dataset.info().codec.framed(dataset.info().spec);
  const std::uint64_t sample =
      framed ? static_cast<std::uint64_t>(mean_frame_bytes(dataset)) : mean_sample_bytes(dataset);
  const std::uint64_t batch = options.batch_size;
  // As transport direct: whole pages around a sample at any place,
  // and the batches that fit into readahead_bytes.
  const bool aligned = !framed && sample % kPage == 0;
  const std::uint64_t block = (sample + kPage - 1) / kPage * kPage + (aligned ? 0 : kPage);
  const std::uint64_t ahead = std::clamp<std::uint64_t>(options.memory.readahead_bytes / (block * batch), 1,
                                                        std::uint64_t{options.prefetch} + 1);
  loader_ = {block, true, true, static_cast<unsigned>(std::min<std::uint64_t>(kMostRequests, ahead * batch))};
  try {
    make_uring_queue(1);
  } catch (const Error&) {  // then the loader reads by threads, too
    loader_.uring = false;
    loader_.depth = kThreads;
  }
  std::vector<std::filesystem::path> files;
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) files.push_back(dataset.shard(i).path());
  disk_.emplace(files, std::max(kLargeBlock, block));
}

double DiskLimit::as_loader() { return disk_->rate(loader_); }

double DiskLimit::fastest() {
  if (fastest_.depth == 0) {
    constexpr std::uint64_t kBlock = std::uint64_t{1} << 20U;
    double best = -1;
    const RawDisk::Pattern tried[] = {{kBlock, false, true, 32},      {kBlock, false, true, 256},
                                      {kLargeBlock, false, true, 32}, {kBlock, false, false, 8},
                                      {kBlock, false, false, 32},     loader_};
    for (const RawDisk::Pattern& pattern : tried) {
      if (pattern.uring && !loader_.uring) continue;
      const double rate = disk_->rate(pattern);
      if (rate > best) fastest_ = pattern;
      best = std::max(best, rate);
    }
  }
  return disk_->rate(fastest_);
}

std::string DiskLimit::words(const RawDisk::Pattern& pattern) {
  return fmt::format("{}, blocks of {} KiB, {} {}", pattern.random ? "random places" : "in sequence",
                     pattern.block_bytes >> 10U, pattern.depth,
                     pattern.uring ? "requests of io_uring" : "threads");
}

}  // namespace shard::bench
