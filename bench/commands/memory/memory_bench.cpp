#include "commands/memory/memory_bench.hpp"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>

#include <fmt/core.h>

#include "direct/direct_alignment.hpp"
#include "direct/direct_file.hpp"
#include "shard/error.hpp"
#include "transport/transport.hpp"

namespace shard::bench {
namespace {

constexpr std::uint64_t kMostBatch = 65'536;
constexpr std::uint64_t kColumnAlign = 256;
constexpr std::uint64_t kDirectAlign = 4096;
constexpr std::chrono::seconds kSettles{10};

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

std::uint64_t columns_bytes(const Dataset& dataset, std::uint64_t batch) {
  std::uint64_t bytes = round_up(sizeof(std::int64_t) * batch, kColumnAlign) + round_up(batch, kColumnAlign);
  for (const ColumnSpec& column : dataset.info().columns) {
    std::uint64_t row = size_bytes(column.dtype);
    for (const std::uint64_t extent : column.row_shape) row *= extent;
    bytes += round_up(row * batch, kColumnAlign);
  }
  return bytes;
}

// Of all batches.
std::uint64_t staging_bytes(const Dataset& dataset, TransportKind link, std::uint64_t batch,
                            std::uint32_t prefetch) {
  const std::uint64_t most = most_bytes_to_device(dataset.info());
  if (link == TransportKind::staged)
    return staging_plan(most * batch, prefetch, last_cache_bytes()).buffers * most * batch;
  if (link != TransportKind::direct) return 0;
  const Codec::Kind codec = dataset.info().codec.kind;
  const ShardReader& first = dataset.shard(0);
  const std::uint64_t alignment = direct_alignment(DirectFile(first).descriptor(), first.file_size_bytes());
  const std::uint64_t unit = std::max<std::uint64_t>(alignment, kDirectAlign);
  const bool aligned = codec == Codec::Kind::zstd ||
                       (codec == Codec::Kind::none && most % alignment == 0 && alignment <= kDirectAlign);
  const std::uint64_t pitch = aligned ? most : round_up(most, unit) + unit;
  return (std::uint64_t{prefetch} + 1) * (pitch * batch + unit);
}

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

LoaderOptions options_of(const MemoryOptions& options, std::uint64_t batch) {
  LoaderOptions loader = options.loader;
  loader.order.mode = OrderMode::shuffle;
  loader.order.tail = Tail::wrap;
  loader.order.batch_size = batch;
  return loader;
}

void measure(MemoryCase& one, const std::shared_ptr<const Dataset>& dataset,
             const std::shared_ptr<Device>& device, const LoaderOptions& options,
             const std::atomic<bool>& cancel) {
  give_memory_back();
  one.free_before = device->free_memory_bytes();
  one.process_before = process_bytes();
  one.link = predict_link(*dataset, device->info(), options);
  one.predicted = predict_memory(*dataset, device->info(), options, one.link, one.free_before);
  Loader loader(dataset, device, options);
  const std::unique_ptr<Stream> stream = device->create_stream();
  const std::uint64_t least = 2 * (std::uint64_t{options.prefetch} + 1);
  const bool resident =
      options.transport == TransportKind::resident;  // its memory is all used after an epoch
  // Shards are registered while batches go on, and staging memory is given back after that.
  const auto deadline = std::chrono::steady_clock::now() + kSettles;
  const auto settled = [&] {
    const LoaderStats stats = loader.stats();
    return (stats.registered_bytes >= one.predicted.registered_bytes &&
            stats.pinned_bytes <= one.predicted.pinned_bytes) ||
           std::chrono::steady_clock::now() > deadline;
  };
  const auto enough = [&] { return !resident && one.batches >= least && settled(); };
  for (std::uint64_t epoch = 0; one.batches < least || !settled(); ++epoch) {
    for (Batch& batch : loader.epoch(epoch)) {
      if (cancel) throw Error(ErrorCode::cancelled, "stopped");
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
  one.measured = {stats.device_bytes, stats.pinned_bytes, stats.registered_bytes};
  one.transport = stats.transport;
  one.reason = stats.reason;
}

}  // namespace

LoaderMemory predict_memory(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options,
                            TransportKind link, std::uint64_t free_bytes) {
  const SampleSpec& spec = dataset.info().spec;
  const std::uint64_t most = most_bytes_to_device(dataset.info());
  const bool packed = dataset.info().codec.kind == Codec::Kind::packed;
  const bool whole =
      packed && options.transform.crop == CropKind::random_resized && !device.reads_host_memory;
  const std::uint64_t batch = options.order.batch_size;
  const std::uint64_t slots = std::uint64_t{options.prefetch} + 1;
  const bool resident = options.transport == TransportKind::resident;
  const bool in_place = link == TransportKind::mapped && device.reads_host_memory && !resident;
  const bool as_stored = is_identity(dataset.info(), options.transform);
  const std::uint64_t raw = in_place || as_stored ? 0 : most * batch;
  const std::uint64_t columns = columns_bytes(dataset, batch);
  LoaderMemory memory;
  memory.device_bytes =
      slots *
          (plan_transform(dataset.info(), options.transform).delivered.size_bytes() * batch + raw + columns) +
      (whole ? spec.elements() * batch : 0);
  memory.pinned_bytes = slots * (columns + (packed ? sizeof(std::uint32_t) * batch : 0)) +
                        staging_bytes(dataset, link, batch, options.prefetch);
  std::uint64_t shards = 0;
  std::uint64_t images = 0;
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) {
    shards += dataset.info().shards[i].size_bytes;
    const ShardHeader& header = dataset.shard(i).header();
    images += header.images_end - header.images_begin;
  }
  if (resident) {
    const std::uint64_t left = free_bytes - std::min(free_bytes, memory.device_bytes);
    const std::uint64_t budget = options.resident_bytes != 0 ? options.resident_bytes : left / 2;
    // The order is a shuffle, in which a rank comes to every sample.
    memory.device_bytes += packed ? std::min({shards, dataset.size() * most, budget})
                                  : std::min(dataset.size(), budget / most) * most;
  }
  if (link == TransportKind::mapped && !device.reads_host_memory) memory.registered_bytes = images;
  return memory;
}

TransportKind predict_link(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options) {
  if (options.transport != TransportKind::automatic && options.transport != TransportKind::resident)
    return options.transport;
  std::uint64_t total = 0;
  for (const ShardSummary& shard : dataset.info().shards) total += shard.size_bytes;
  const std::uint64_t available = shard::available_memory_bytes();
  const std::uint64_t budget = options.registered_bytes != 0 ? options.registered_bytes : available / 2;
  const bool mapped = dataset.info().codec.kind != Codec::Kind::zstd && device.registers_read_only &&
                      (device.reads_host_memory || total <= budget);
  if (total > available && (device.reads_host_memory || !mapped)) return TransportKind::direct;
  return mapped ? TransportKind::mapped : TransportKind::staged;
}

double difference(std::uint64_t predicted, std::uint64_t measured) noexcept {
  if (predicted == measured) return 0;
  if (predicted == 0) return 1;
  const auto a = static_cast<double>(predicted);
  const auto b = static_cast<double>(measured);
  return (a > b ? a - b : b - a) / a;
}

std::vector<MemoryCase> bench_memory(const std::shared_ptr<const Dataset>& dataset,
                                     const std::shared_ptr<Device>& device, const MemoryOptions& options,
                                     const std::atomic<bool>& cancel,
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
    MemoryCase one;
    one.batch_size = batch;
    try {
      measure(one, dataset, device, options_of(options, batch), cancel);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      one.problem = error.what();
    }
    cases.push_back(one);
    done(cases);
  }
  return cases;
}

}  // namespace shard::bench
