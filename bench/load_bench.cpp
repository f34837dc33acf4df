#include "load_bench.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "shard/error.hpp"

namespace shard::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Pinned blocks of 256 MiB to the device, 4 GiB in all: the link and nothing else.
double link_limit(Device& device) {
  constexpr std::uint64_t kBlock = std::uint64_t{256} << 20U;
  constexpr int kCopies = 16;
  const auto source = device.allocate_pinned(kBlock);
  const auto target = device.allocate_device(kBlock);
  std::memset(source->data(), 0x5A, kBlock);
  const auto stream = device.create_stream();
  const CopyItem item{target->data(), source->data(), kBlock};
  stream->copy({&item, 1});
  stream->synchronize();
  const auto begin = Clock::now();
  for (int i = 0; i < kCopies; ++i) stream->copy({&item, 1});
  stream->synchronize();
  return static_cast<double>(kBlock) * kCopies / seconds_since(begin);
}

// Samples in the order of the loader, from the mapping into a ring of as many batches, by the device's own
// threads: a bare gather. Of codecs with frames the stored frames are copied, and count as the samples they
// are.
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
      const std::span<const std::byte> frame = dataset.shard(at.shard).frame(at.sample);
      work[b].push_back({ring[b % ring.size()]->data() + i * size, frame.data(),
                         std::min<std::uint64_t>(frame.size(), size)});
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

double limit_of(const Dataset& dataset, Device& device, const LoaderOptions& options) {
  return device.info().kind == DeviceKind::host ? gather_limit(dataset, device, options) : link_limit(device);
}

}  // namespace

LoadResult bench_load(const std::shared_ptr<const Dataset>& dataset, const std::shared_ptr<Device>& device,
                      const LoadCase& load) {
  LoadResult result;
  result.limit_is = device->info().kind == DeviceKind::host
                        ? "bare gather of what is stored, same threads, same samples"
                        : "pinned memory to the device, blocks of 256 MiB";
  const auto made = Clock::now();
  Loader loader(dataset, device, load.options);
  const auto stream = device->create_stream();
  if (auto first = loader.next()) {
    first->wait_on(stream->native());
    stream->synchronize();
    result.first_batch_seconds = seconds_since(made);
    first->release(stream->native());
  }
  std::uint64_t epoch = 1;
  for (Batch& batch : loader.epoch(epoch)) {  // a warm epoch: pages, registrations, residents
    batch.wait_on(stream->native());
    batch.release(stream->native());
  }
  stream->synchronize();
  std::vector<double> limits;
  for (std::uint32_t repeat = 0; repeat < load.repeats; ++repeat) {
    limits.push_back(limit_of(*dataset, *device, load.options));
    std::uint64_t samples = 0;
    const double cpu = cpu_seconds();
    const auto begin = Clock::now();
    while (seconds_since(begin) < load.seconds) {
      for (Batch& batch : loader.epoch(++epoch)) {
        samples += batch.size();
        batch.wait_on(stream->native());
        batch.release(stream->native());
      }
      stream->synchronize();
    }
    const double took = seconds_since(begin);
    const double rate = static_cast<double>(samples) / took;
    result.samples.push_back(
        {rate, rate * static_cast<double>(dataset->info().spec.size_bytes()), (cpu_seconds() - cpu) / took});
  }
  std::sort(limits.begin(), limits.end());
  result.limit_bytes_per_second = limits[limits.size() / 2];
  result.stats = loader.stats();
  return result;
}

void make_random_dataset(const std::string& folder, std::uint64_t samples, const SampleSpec& spec,
                         unsigned threads) {
  if (folder_state(folder) == FolderState::complete) return;
  std::filesystem::create_directories(folder);
  DatasetInfo info;
  info.spec = spec;
  info.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  info.fingerprint = "0000000000000000";
  info.source_digest = "0000000000000000";
  info.inputs = samples;
  ShardWriterOptions options;
  options.spec = spec;
  options.normalization = info.normalization;
  options.fingerprint = info.fingerprint;
  const std::uint64_t per_shard = std::max<std::uint64_t>(1, (std::uint64_t{256} << 20U) / spec.size_bytes());
  const std::uint64_t shards = (samples + per_shard - 1) / per_shard;
  info.shards.resize(shards);
  std::atomic<std::uint64_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      std::vector<std::byte> sample(spec.size_bytes());
      for (std::uint64_t s = next++; s < shards; s = next++) {
        const std::uint64_t count = std::min(per_shard, samples - s * per_shard);
        ShardWriter writer = ShardWriter::create(
            std::filesystem::path(folder) / ("shard-" + std::to_string(s) + ".safetensors"), count, options);
        for (std::uint64_t i = 0; i < count; ++i) {
          std::uint64_t state = (s * per_shard + i) * 0x9E3779B97F4A7C15U + 1;
          for (std::size_t at = 0; at + 8 <= sample.size(); at += 8) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            const std::uint64_t word = state ^ (state >> 29U);
            std::memcpy(sample.data() + at, &word, 8);
          }
          const std::uint64_t label = (s * per_shard + i) % 1000;
          std::vector<std::byte> row(8);
          std::memcpy(row.data(), &label, 8);
          writer.put(i, std::to_string(s * per_shard + i), row, sample);
        }
        info.shards[s] = writer.publish();
      }
    });
  }
  workers.clear();
  publish_file(std::filesystem::path(folder) / kDatasetFile, serialize_dataset(info));
}

}  // namespace shard::bench
