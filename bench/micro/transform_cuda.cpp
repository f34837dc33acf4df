// bench_transform_cuda [SECONDS [DATASET ...]]: samples/s of the kernels on samples that lie in device
// memory, batches of 256. DATASET: of codec packed, 224x224 or 256x256. For developers; `shardbench load`
// measures what users see.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/transform.hpp"
#include "shard/dataset.hpp"

namespace {

using namespace shard;

constexpr std::size_t kBatch = 256;
constexpr std::size_t kSlots = 8;
constexpr std::size_t kDataBytes = std::size_t{4} << 30U;
constexpr std::size_t kFramesBytes = std::size_t{1} << 30U;

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct Memory {
  std::byte* data;
  std::byte* targets;
  std::byte* pinned;
  std::byte* scratch;
  std::byte* unpacked;
  std::uint32_t* broken;
};

template <class Queue>
void measure(const char* name, double seconds, double bytes_a_sample, const Queue& queue) {
  std::vector<cudaEvent_t> done(kSlots);
  for (cudaEvent_t& event : done) require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin;
  std::size_t batches = 0;
  for (std::size_t i = 0;; ++i) {
    if (i == 2 * kSlots) {  // warm
      require(cudaDeviceSynchronize());
      begin = Clock::now();
      batches = 0;
    }
    require(cudaEventSynchronize(done[i % kSlots]));
    if (i > 2 * kSlots && std::chrono::duration<double>(Clock::now() - begin).count() > seconds) break;
    queue(i % kSlots, i);
    require(cudaEventRecord(done[i % kSlots], nullptr));
    ++batches;
  }
  require(cudaDeviceSynchronize());
  const double rate =
      static_cast<double>(batches * kBatch) / std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%-52s %11.0f samples/s %8.0f GB/s read and written\n", name, rate,
              rate * bytes_a_sample * 1e-9);
  for (cudaEvent_t event : done) cudaEventDestroy(event);
}

TransformWork work_of(std::uint32_t stored_size, const TransformOptions& options) {
  TransformWork work;
  work.stored = {DType::u8, Layout::nhwc, 3, stored_size, stored_size};
  work.delivered = check_transform(work.stored, options);
  work.normalize = true;
  work.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  return work;
}

// Frames of a data set, again and again until they exceed what a cache holds.
struct Frames {
  std::vector<const std::byte*> sources;
  std::vector<std::uint64_t> sizes;
  double mean_bytes = 0;
};

Frames upload_frames(const Dataset& dataset, std::byte* memory) {
  Frames frames;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; at < kFramesBytes; i = (i + 1) % dataset.size()) {
    const Dataset::Location where = dataset.locate(i);
    const std::span<const std::byte> frame = dataset.shard(where.shard).frame(where.sample);
    require(cudaMemcpy(memory + at, frame.data(), frame.size(), cudaMemcpyHostToDevice));
    frames.sources.push_back(memory + at);
    frames.sizes.push_back(frame.size());
    at += frame.size();
  }
  frames.mean_bytes = static_cast<double>(at) / static_cast<double>(frames.sizes.size());
  return frames;
}

void measure_packed(const char* name, const Memory& memory, double seconds, const Dataset& dataset,
                    const TransformOptions& options) {
  const Frames frames = upload_frames(dataset, memory.data);
  const TransformWork work = work_of(dataset.info().spec.width, options);
  std::mt19937_64 random(1);
  std::vector<const std::byte*> sources(kBatch * 64);
  std::vector<std::uint64_t> sizes(sources.size());
  std::vector<SampleView> views(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t k = random() % frames.sources.size();
    sources[i] = frames.sources[k];
    sizes[i] = frames.sizes[k];
    views[i] = draw_view(work.stored, options, 1, 0, i);
  }
  std::memset(memory.broken, 0, kBatch * sizeof(std::uint32_t));
  measure(name, seconds, frames.mean_bytes + static_cast<double>(work.delivered.size_bytes()),
          [&](std::size_t slot, std::size_t i) {
            TransformWork batch = work;
            batch.sources = std::span(sources).subspan(i % 64 * kBatch, kBatch);
            batch.frame_bytes = std::span(sizes).subspan(i % 64 * kBatch, kBatch);
            batch.views = std::span(views).subspan(i % 64 * kBatch, kBatch);
            batch.target = memory.targets + slot * kBatch * work.delivered.size_bytes();
            batch.broken = memory.broken;
            batch.unpacked = memory.unpacked;
            const std::size_t scratch_bytes = transform_scratch_bytes(batch);
            launch_transform(batch, memory.pinned + slot * scratch_bytes,
                             memory.scratch + slot * scratch_bytes, nullptr);
          });
  for (std::size_t i = 0; i < kBatch; ++i)
    if (memory.broken[i] != 0) throw std::runtime_error("a frame is broken");
}

void measure_transform(const char* name, const Memory& memory, double seconds, std::uint32_t stored_size,
                       const TransformOptions& options) {
  const TransformWork work = work_of(stored_size, options);
  const std::size_t samples = kDataBytes / work.stored.size_bytes();
  std::mt19937_64 random(1);
  std::vector<const std::byte*> sources(kBatch * 64);
  std::vector<SampleView> views(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i] = memory.data + random() % samples * work.stored.size_bytes();
    views[i] = draw_view(work.stored, options, 1, 0, i);
  }
  measure(name, seconds, static_cast<double>(work.stored.size_bytes() + work.delivered.size_bytes()),
          [&](std::size_t slot, std::size_t i) {
            TransformWork batch = work;
            batch.sources = std::span(sources).subspan(i % 64 * kBatch, kBatch);
            batch.views = std::span(views).subspan(i % 64 * kBatch, kBatch);
            batch.target = memory.targets + slot * kBatch * work.delivered.size_bytes();
            const std::size_t scratch_bytes = transform_scratch_bytes(batch);
            launch_transform(batch, memory.pinned + slot * scratch_bytes,
                             memory.scratch + slot * scratch_bytes, nullptr);
          });
}

TransformOptions options(CropKind crop, std::uint32_t size, double flip, DType dtype, Layout layout) {
  TransformOptions all;
  all.crop = crop;
  all.crop_height = all.crop_width = size;
  all.flip_probability = flip;
  all.dtype = dtype;
  all.layout = layout;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  Memory memory{};
  require(cudaMalloc(reinterpret_cast<void**>(&memory.data), kDataBytes));
  require(cudaMemset(memory.data, 0x5A, kDataBytes));
  std::vector<std::byte> noise(std::size_t{64} << 20U);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(i * 2654435761U >> 11U);
  for (std::size_t at = 0; at < kDataBytes; at += noise.size())
    require(cudaMemcpy(memory.data + at, noise.data(), noise.size(), cudaMemcpyHostToDevice));
  constexpr std::size_t kScratchBytes = std::size_t{1} << 20U;
  require(cudaMalloc(reinterpret_cast<void**>(&memory.targets), kSlots * kBatch * 3 * 256 * 256 * 4));
  require(cudaMalloc(reinterpret_cast<void**>(&memory.scratch), kScratchBytes));
  require(cudaMallocHost(reinterpret_cast<void**>(&memory.pinned), kScratchBytes));
  require(cudaMalloc(reinterpret_cast<void**>(&memory.unpacked), kBatch * 3 * 256 * 256));
  require(cudaMallocHost(reinterpret_cast<void**>(&memory.broken), kBatch * sizeof(std::uint32_t)));

  using enum CropKind;
  measure_transform("u8 224 -> f16 nchw", memory, seconds, 224,
                    options(none, 0, 0, DType::f16, Layout::nchw));
  measure_transform("u8 224 -> bf16 nchw", memory, seconds, 224,
                    options(none, 0, 0, DType::bf16, Layout::nchw));
  measure_transform("u8 256 -> random crop 224, flip -> f16 nchw", memory, seconds, 256,
                    options(random, 224, 0.5, DType::f16, Layout::nchw));
  measure_transform("u8 256 -> random resized 224, flip -> f16 nchw", memory, seconds, 256,
                    options(random_resized, 224, 0.5, DType::f16, Layout::nchw));
  measure_transform("u8 256 -> random resized 224, flip -> u8 nhwc", memory, seconds, 256,
                    options(random_resized, 224, 0.5, DType::u8, Layout::nhwc));
  measure_transform("u8 224 -> f16 nhwc", memory, seconds, 224,
                    options(none, 0, 0, DType::f16, Layout::nhwc));
  measure_transform("u8 224 -> f32 nchw", memory, seconds, 224,
                    options(none, 0, 0, DType::f32, Layout::nchw));

  constexpr std::size_t kSampleBytes = std::size_t{3} * 224 * 224;
  std::mt19937_64 random_sample(2);
  std::vector<CopyItem> items(kBatch);
  measure("gather of u8 224", seconds, 2 * kSampleBytes, [&](std::size_t slot, std::size_t) {
    for (std::size_t k = 0; k < kBatch; ++k)
      items[k] = {memory.targets + (slot * kBatch + k) * kSampleBytes,
                  memory.data + random_sample() % (kDataBytes / kSampleBytes) * kSampleBytes, kSampleBytes};
    const std::size_t scratch_bytes = gather_scratch_bytes(kBatch);
    launch_gather(items, memory.pinned + slot * scratch_bytes, memory.scratch + slot * scratch_bytes,
                  nullptr);
  });

  for (int i = 2; i < argc; ++i) {
    const Dataset dataset = Dataset::open(argv[i]);
    const std::string size = "packed " + std::to_string(dataset.info().spec.width);
    const auto packed = [&](const std::string& name, const TransformOptions& options) {
      measure_packed((size + name).c_str(), memory, seconds, dataset, options);
    };
    packed(" -> u8 nhwc", options(none, 0, 0, DType::u8, Layout::nhwc));
    packed(" -> f16 nchw", options(none, 0, 0, DType::f16, Layout::nchw));
    packed(" -> f32 nchw", options(none, 0, 0, DType::f32, Layout::nchw));
    packed(" -> f16 nhwc", options(none, 0, 0, DType::f16, Layout::nhwc));
    packed(" -> random crop 192, flip -> f16 nchw", options(random, 192, 0.5, DType::f16, Layout::nchw));
    packed(" -> random resized 224, flip -> f16 nchw",
           options(random_resized, 224, 0.5, DType::f16, Layout::nchw));
  }
}
