// bench_transform host|cuda [SECONDS [THREADS [DATASET ...]]]: samples/s of the transform of random samples
// that lie in the device's memory, in batches of 256, and CPU time per sample; on a GPU also of a gather
// without a transform. DATASET: of codec packed. THREADS: of the host device. For developers; `shardbench
// load` measures what users see.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "feeds/loader_arguments.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"

namespace {

using namespace shard;

constexpr std::size_t kBatch = 256;
constexpr std::size_t kSlots = 8;
constexpr std::size_t kDraws = 64;  // batches of random samples, in turn
constexpr std::uint64_t kMostSampleBytes = std::uint64_t{3} * 512 * 512 * 4;

class Bench {
 public:
  Bench(std::shared_ptr<Device> device, double seconds)
      : device_(std::move(device)),
        seconds_(seconds),
        stream_(device_->create_stream()),
        data_(device_->allocate_device(on_gpu() ? std::uint64_t{4} << 30U : std::uint64_t{1} << 30U)),
        targets_(device_->allocate_device(kSlots * kBatch * kMostSampleBytes / 4)),
        unpacked_(device_->allocate_device(kBatch * kMostSampleBytes / 4)),
        broken_(device_->allocate_pinned(kBatch * sizeof(std::uint32_t))) {
    const auto noise = device_->allocate_pinned(std::uint64_t{64} << 20U);
    for (std::size_t i = 0; i < noise->size_bytes(); ++i)
      noise->data()[i] = static_cast<std::byte>(i * 2654435761U >> 11U);
    for (std::uint64_t at = 0; at < data_->size_bytes(); at += noise->size_bytes())
      upload(data_->data() + at, {noise->data(), noise->size_bytes()});
  }

  bool on_gpu() const { return device_->info().kind == DeviceKind::cuda; }

  void transform(std::uint32_t side, CropKind crop, std::uint32_t size, double flip, DType dtype,
                 Layout layout) {
    const SampleSpec stored{DType::u8, Layout::nhwc, 3, side, side};
    const std::uint64_t samples = data_->size_bytes() / stored.size_bytes();
    run("u8 " + std::to_string(side), stored, options(crop, size, flip, dtype, layout),
        static_cast<double>(stored.size_bytes()), [&](std::uint64_t draw) {
          return std::pair(data_->data() + draw % samples * stored.size_bytes(), std::uint64_t{0});
        });
  }

  // Frames of a data set, again and again until they exceed what a cache holds.
  void packed(const Dataset& dataset) {
    std::vector<std::pair<const std::byte*, std::uint64_t>> frames;
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0;; i = (i + 1) % dataset.size()) {
      const Dataset::Location at = dataset.locate(i);
      const std::span<const std::byte> frame = dataset.shard(at.shard).images().frame(at.sample);
      if (bytes + frame.size() > data_->size_bytes() / 4) break;
      upload(data_->data() + bytes, frame);
      frames.emplace_back(data_->data() + bytes, frame.size());
      bytes += frame.size();
    }
    const SampleSpec& stored = dataset.info().spec;
    const auto one = [&](CropKind crop, std::uint32_t size, double flip, DType dtype, Layout layout) {
      run("packed " + std::to_string(stored.width), stored, options(crop, size, flip, dtype, layout),
          static_cast<double>(bytes) / static_cast<double>(frames.size()),
          [&](std::uint64_t draw) { return frames[draw % frames.size()]; });
    };
    one(CropKind::none, 0, 0, DType::u8, Layout::nhwc);
    one(CropKind::none, 0, 0, DType::f16, Layout::nchw);
    one(CropKind::none, 0, 0, DType::f32, Layout::nchw);
    one(CropKind::none, 0, 0, DType::f16, Layout::nhwc);
    one(CropKind::random, 192, 0.5, DType::f16, Layout::nchw);
    one(CropKind::random_resized, 224, 0.5, DType::f16, Layout::nchw);
  }

  void gather() {
    constexpr std::uint64_t kBytes = std::uint64_t{3} * 224 * 224;
    std::mt19937_64 random(2);
    std::vector<CopyItem> items(kBatch);
    measure("gather of u8 224", 2 * kBytes, [&](std::size_t slot, std::size_t) {
      for (std::size_t k = 0; k < kBatch; ++k)
        items[k] = {targets_->data() + (slot * kBatch + k) * kBytes,
                    data_->data() + random() % (data_->size_bytes() / kBytes) * kBytes, kBytes};
      stream_->gather(items);
    });
  }

 private:
  static TransformOptions options(CropKind crop, std::uint32_t size, double flip, DType dtype,
                                  Layout layout) {
    TransformOptions all;
    all.crop = crop;
    all.crop_height = all.crop_width = size;
    all.flip = flip;
    all.dtype = dtype;
    all.layout = layout;
    return all;
  }

  void upload(std::byte* target, std::span<const std::byte> bytes) {
    const CopyItem item{target, bytes.data(), bytes.size()};
    stream_->copy({&item, 1});
    stream_->synchronize();
  }

  // source(draw): a random sample, and the size of its frame, which is 0 where samples lie as they are.
  template <class Source>
  void run(const std::string& of, const SampleSpec& stored, const TransformOptions& options,
           double stored_bytes, const Source& source) {
    TransformWork work;
    work.stored = stored;
    work.delivered = check_transform(stored, options);
    work.normalize = work.delivered.dtype != DType::u8;
    work.normalization = convert::kImagenet;
    std::mt19937_64 random(1);
    std::vector<const std::byte*> sources(kBatch * kDraws);
    std::vector<std::uint64_t> sizes(sources.size());
    std::vector<SampleCrop> crops(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::tie(sources[i], sizes[i]) = source(random());
      crops[i] = draw_crop(stored, options, 1, 0, i);
    }
    const bool packed = sizes.front() > 0;
    std::memset(broken_->data(), 0, broken_->size_bytes());
    const char* const crop = options.crop == CropKind::random           ? "random crop, flip "
                             : options.crop == CropKind::random_resized ? "random resized, flip "
                                                                        : "";
    const std::string name = of + " -> " + crop + std::to_string(work.delivered.width) + " " +
                             std::string(to_string(work.delivered.dtype)) + " " +
                             std::string(to_string(work.delivered.layout));
    measure(name, stored_bytes + static_cast<double>(work.delivered.size_bytes()),
            [&](std::size_t slot, std::size_t i) {
              const std::size_t first = i % kDraws * kBatch;
              work.sources = std::span(sources).subspan(first, kBatch);
              work.crops = std::span(crops).subspan(first, kBatch);
              work.target = targets_->data() + slot * kBatch * work.delivered.size_bytes();
              if (packed) {
                work.frame_bytes = std::span(sizes).subspan(first, kBatch);
                work.broken = reinterpret_cast<std::uint32_t*>(broken_->data());
                work.unpacked = unpacked_->data();
              }
              stream_->transform(work);
            });
    const auto* const broken = reinterpret_cast<const std::uint32_t*>(broken_->data());
    if (std::any_of(broken, broken + kBatch, [](std::uint32_t one) { return one != 0; }))
      throw std::runtime_error("a frame is broken");
  }

  void measure(const std::string& name, double bytes_per_sample,
               const std::function<void(std::size_t slot, std::size_t batch)>& queue) {
    std::vector<Event> done(kSlots);
    Stopwatch watch;
    std::clock_t cpu = 0;
    std::size_t batches = 0;
    for (std::size_t i = 0;; ++i) {
      if (i == 2 * kSlots) {  // warm
        stream_->synchronize();
        watch.restart();
        cpu = std::clock();
        batches = 0;
      }
      done[i % kSlots].wait();
      if (i > 2 * kSlots && watch.seconds() > seconds_) break;
      queue(i % kSlots, i);
      done[i % kSlots] = stream_->record();
      ++batches;
    }
    stream_->synchronize();
    const auto samples = static_cast<double>(batches * kBatch);
    const double rate = samples / watch.seconds();
    std::printf("%-52s %11.0f samples/s %8.0f GB/s read and written %8.1f us of a CPU per sample\n",
                name.c_str(), rate, rate * bytes_per_sample * 1e-9,
                static_cast<double>(std::clock() - cpu) * 1e6 / CLOCKS_PER_SEC / samples);
  }

  std::shared_ptr<Device> device_;
  double seconds_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Block> data_, targets_, unpacked_, broken_;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string device = argc > 1 ? argv[1] : "host";
  const auto threads = static_cast<unsigned>(argc > 3 ? std::max(1, std::atoi(argv[3])) : 2);
  Bench bench(bench::devices_of(device, threads)[0], argc > 2 ? std::atof(argv[2]) : 1.0);
  using enum CropKind;
  bench.transform(224, none, 0, 0, DType::f16, Layout::nchw);
  bench.transform(224, none, 0, 0, DType::bf16, Layout::nchw);
  bench.transform(224, none, 0, 0, DType::f32, Layout::nchw);
  bench.transform(224, none, 0, 0, DType::f16, Layout::nhwc);
  bench.transform(224, none, 0, 0.5, DType::u8, Layout::nchw);
  bench.transform(256, random, 224, 0.5, DType::f16, Layout::nchw);
  bench.transform(256, random, 224, 0.5, DType::u8, Layout::nhwc);
  bench.transform(256, random_resized, 224, 0.5, DType::f16, Layout::nchw);
  bench.transform(256, random_resized, 224, 0.5, DType::u8, Layout::nhwc);
  bench.transform(512, random_resized, 224, 0.5, DType::f16, Layout::nchw);
  if (bench.on_gpu()) bench.gather();
  for (int i = 4; i < argc; ++i) bench.packed(Dataset::open(argv[i]));
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_transform: %s\n", error.what());
  return 1;
}
