// bench_transform [THREADS] [SECONDS] [PIECE OF A CASE'S NAME]: samples/s, and CPU time a sample, of the
// host's transform of random samples out of 1 GB, into a ring of batches of 256. For developers; `shardbench
// load` measures what users see.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "transform/host_transform.hpp"

namespace {

using namespace shard;

struct Case {
  std::string name;
  std::uint32_t stored_size;
  TransformOptions options;
};

TransformOptions options(CropKind crop, std::uint32_t size, double flip, DType dtype, Layout layout) {
  TransformOptions all;
  all.crop = crop;
  all.crop_height = all.crop_width = size;
  all.flip_probability = flip;
  all.dtype = dtype;
  all.layout = layout;
  return all;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void measure(const Case& measured, const std::vector<std::byte>& data, unsigned threads, double seconds) {
  constexpr std::size_t kBatch = 256;
  constexpr std::size_t kRing = 4;
  TransformWork work;
  work.stored = {DType::u8, Layout::nhwc, 3, measured.stored_size, measured.stored_size};
  work.delivered = check_transform(work.stored, measured.options);
  work.normalize = true;
  work.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const std::size_t samples = data.size() / work.stored.size_bytes();
  const std::size_t batch_bytes = kBatch * work.delivered.size_bytes();
  std::vector<std::byte> ring(kRing * batch_bytes + 64);
  std::byte* const aligned = ring.data() + (64 - reinterpret_cast<std::uintptr_t>(ring.data()) % 64) % 64;

  std::mt19937_64 random(1);
  std::vector<const std::byte*> sources(kBatch * 16);
  std::vector<SampleView> views(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i] = data.data() + random() % samples * work.stored.size_bytes();
    views[i] = draw_view(work.stored, measured.options, 1, 0, i);
  }
  std::atomic<std::uint64_t> next{0};  // groups of 16 rows
  std::atomic<std::uint64_t> done{0};
  const double cpu_begin = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      while (elapsed() < seconds) {
        constexpr std::size_t kRows = 16;
        const std::uint64_t group = next++;
        const std::size_t batch = group / (kBatch / kRows);
        const std::size_t row = group % (kBatch / kRows) * kRows;
        TransformWork part = work;
        part.sources = std::span(sources).subspan(batch % 16 * kBatch, kBatch);
        part.views = std::span(views).subspan(batch % 16 * kBatch, kBatch);
        part.target = aligned + batch % kRing * batch_bytes;
        transform_rows(part, row, row + kRows);
        done += kRows;
      }
    });
  for (std::thread& worker : workers) worker.join();
  const auto samples_done = static_cast<double>(done);
  std::printf("%-50s %10.0f samples/s %8.1f us of a CPU a sample\n", measured.name.c_str(),
              samples_done / elapsed(), (cpu_seconds() - cpu_begin) * 1e6 / samples_done);
}

}  // namespace

int main(int argc, char** argv) {
  const auto threads = static_cast<unsigned>(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1.0;
  std::vector<std::byte> data(std::size_t{1} << 30U);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 2654435761U >> 11U);
  using enum CropKind;
  const std::vector<Case> cases{
      {"u8 256 -> random resized 224, flip -> u8 nhwc", 256,
       options(random_resized, 224, 0.5, DType::u8, Layout::nhwc)},
      {"u8 256 -> random resized 224, flip -> f16 nchw", 256,
       options(random_resized, 224, 0.5, DType::f16, Layout::nchw)},
      {"u8 512 -> random resized 224, flip -> f16 nchw", 512,
       options(random_resized, 224, 0.5, DType::f16, Layout::nchw)},
      {"u8 224 -> f16 nchw", 224, options(none, 0, 0, DType::f16, Layout::nchw)},
      {"u8 224 -> f16 nhwc", 224, options(none, 0, 0, DType::f16, Layout::nhwc)},
      {"u8 224 -> f32 nchw", 224, options(none, 0, 0, DType::f32, Layout::nchw)},
      {"u8 256 -> random crop 224, flip -> f16 nchw", 256,
       options(random, 224, 0.5, DType::f16, Layout::nchw)},
      {"u8 256 -> random crop 224, flip -> u8 nhwc", 256, options(random, 224, 0.5, DType::u8, Layout::nhwc)},
      {"u8 224 -> flip -> u8 nchw", 224, options(none, 0, 0.5, DType::u8, Layout::nchw)}};
  const std::string piece = argc > 3 ? argv[3] : "";
  for (const Case& measured : cases)
    if (measured.name.find(piece) != std::string::npos) measure(measured, data, threads, seconds);
}
