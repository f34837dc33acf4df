// The CUDA kernels against the host's transform, bit for bit. Skips where there is no device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/kernels/transform.hpp"
#include "support/expect_error.hpp"
#include "support/transform/random_exact_work.hpp"
#include "support/transform/random_work.hpp"
#include "transform/host_transform.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomWork;

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct DeviceFree {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
struct PinnedFree {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using DeviceBytes = std::unique_ptr<std::byte, DeviceFree>;
using PinnedBytes = std::unique_ptr<std::byte, PinnedFree>;

DeviceBytes device_bytes(std::size_t size) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, size + 1));
  return DeviceBytes(static_cast<std::byte*>(memory));
}
PinnedBytes pinned_bytes(std::size_t size) {
  void* memory = nullptr;
  require(cudaMallocHost(&memory, size + 1));
  return PinnedBytes(static_cast<std::byte*>(memory));
}

class TransformCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }

  // Every sample in its own block of exactly its size, so that compute-sanitizer sees any step outside it.
  // `broken`: which frames of codec packed are none. `launch`: instead of a scratch of its own.
  std::vector<std::byte> by_kernel(const RandomWork& random, std::vector<std::uint32_t>* broken = nullptr,
                                   const std::function<void(const TransformWork&)>& launch = {}) {
    RandomWork on_device = random;
    std::vector<DeviceBytes> blocks;
    for (std::size_t i = 0; i < random.samples.size(); ++i) {
      void* memory = nullptr;
      require(cudaMalloc(&memory, std::max<std::size_t>(random.samples[i].size(), 1)));
      blocks.emplace_back(static_cast<std::byte*>(memory));
      require(cudaMemcpy(memory, random.samples[i].data(), random.samples[i].size(), cudaMemcpyHostToDevice));
      on_device.sources[i] = blocks.back().get();
    }
    const DeviceBytes target = device_bytes(random.target_bytes());
    TransformWork work = on_device.work(target.get());
    const PinnedBytes verdicts = pinned_bytes(4 * random.samples.size());
    work.broken = reinterpret_cast<std::uint32_t*>(verdicts.get());
    std::fill_n(work.broken, random.samples.size(), 0U);
    const DeviceBytes unpacked = device_bytes(random.stored.size_bytes() * random.samples.size());
    work.unpacked = unpacked.get();
    const PinnedBytes pinned = pinned_bytes(transform_scratch_bytes(work));
    const DeviceBytes scratch = device_bytes(transform_scratch_bytes(work));
    if (launch)
      launch(work);
    else
      launch_transform(work, pinned.get(), scratch.get(), nullptr);
    require(cudaDeviceSynchronize());
    if (broken != nullptr) broken->assign(work.broken, work.broken + random.samples.size());
    std::vector<std::byte> batch(random.target_bytes());
    require(cudaMemcpy(batch.data(), target.get(), batch.size(), cudaMemcpyDeviceToHost));
    return batch;
  }

  void expect_same(const RandomWork& random) {
    std::vector<std::byte> host(random.target_bytes());
    std::vector<std::uint32_t> host_broken(random.samples.size());
    TransformWork work = random.work(host.data());
    work.broken = host_broken.data();
    transform_rows(work, 0, random.samples.size());
    std::vector<std::uint32_t> broken;
    const std::vector<std::byte> device = by_kernel(random, &broken);
    ASSERT_EQ(broken, host_broken) << random.describe();
    const std::size_t row = random.delivered.size_bytes();
    for (std::size_t i = 0; i < host.size(); ++i)
      if (host[i] != device[i] && broken[i / row] == 0)
        FAIL() << "byte " << i << ": host " << int(host[i]) << ", kernel " << int(device[i]) << ": "
               << random.describe();
  }

  // Works of u8 samples that packing pays for, as frames.
  static RandomWork random_packed(Random& random, std::uint32_t largest) {
    RandomWork work;
    do {
      work = testing::random_work(random, largest);
    } while (work.stored.dtype != DType::u8);
    if (random.between(0, 9) > 0) testing::make_smooth(random, work);
    return testing::packed_work(work);
  }
};

// Also where outputs see so many pixels that a block has no room for all of them.
TEST_F(TransformCuda, GivesTheBitsOfTheHostForSamplesOfAnySize) {
  Random random(41);
  for (int i = 0; i < 1500; ++i) {
    const std::uint32_t largest = i % 50 == 0 ? 3000 : i % 5 == 0 ? 300 : 60;
    const RandomWork work = testing::random_exact_work(random, largest);
    ASSERT_NO_FATAL_FAILURE(expect_same(work)) << i;
  }
}

TEST_F(TransformCuda, EqualsTheHostForSmallSamples) {
  Random random(31);
  for (int round = 0; round < 600 && !HasFatalFailure(); ++round)
    expect_same(testing::random_work(random, 40));
}

TEST_F(TransformCuda, EqualsTheHostForWideSamples) {
  Random random(61);
  for (int round = 0; round < 300 && !HasFatalFailure(); ++round)
    expect_same(testing::random_wide_work(random, 40));
  for (int round = 0; round < 10 && !HasFatalFailure(); ++round)
    expect_same(testing::random_wide_work(random, 300, 14));
  for (int round = 0; round < 6 && !HasFatalFailure(); ++round)
    expect_same(testing::random_wide_work(random, 12, 4096));
}

TEST_F(TransformCuda, EqualsTheHostForTensors) {
  Random random(64);
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round)
    expect_same(testing::random_tensor_work(random));
}

TEST_F(TransformCuda, EqualsTheHostForLargeSamples) {
  Random random(32);
  for (int round = 0; round < 150 && !HasFatalFailure(); ++round)
    expect_same(testing::random_work(random, 400));
}

// Shapes that take the kernel for interleaved RGB, at every alignment of the box.
TEST_F(TransformCuda, EqualsTheHostForCropsOfRgb) {
  Random random(33);
  for (int round = 0; round < 400 && !HasFatalFailure(); ++round) {
    RandomWork work;
    work.stored = {DType::u8, Layout::nhwc, 3, 4 * random.between(3, 20), 4 * random.between(3, 20)};
    work.delivered = {random.one_of({DType::u8, DType::f16, DType::bf16, DType::f32}), Layout::nchw, 3,
                      random.between(1, work.stored.height), 8 * random.between(1, work.stored.width / 8)};
    work.normalize = work.delivered.dtype != DType::u8 && random.coin();
    for (std::size_t c = 0; c < 3; ++c) {
      work.normalization.mean[c] = static_cast<float>(random.between(0, 1000)) / 1000.0F;
      work.normalization.std[c] = static_cast<float>(random.between(1, 1000)) / 999.0F;
    }
    for (int i = 0; i < 5; ++i) {
      work.samples.emplace_back(work.stored.size_bytes());
      random.fill(work.samples.back());
      work.crops.push_back(
          testing::random_crop(random, work.stored, work.delivered.height, work.delivered.width));
    }
    work.sources.resize(work.samples.size());
    for (std::size_t i = 0; i < work.samples.size(); ++i) work.sources[i] = work.samples[i].data();
    expect_same(work);
  }
}

// Strong shrinks of up to 4 channels, which need the most shared memory.
TEST_F(TransformCuda, EqualsTheHostForStrongShrinks) {
  Random random(34);
  for (std::uint32_t channels : {1U, 3U, 4U}) {
    for (std::uint32_t size : {8U, 70U}) {
      RandomWork work;
      work.stored = {DType::u8, Layout::nhwc, channels, 32 * size, 32 * size};
      work.delivered = {DType::u8, Layout::nhwc, channels, size, size};
      work.samples.emplace_back(work.stored.size_bytes());
      random.fill(work.samples.back());
      work.sources = {work.samples[0].data()};
      work.crops = {{0, 0, 32 * size, 32 * size, true}};
      expect_same(work);
    }
  }
}

TEST_F(TransformCuda, EqualsTheHostForStrongShrinksOfFloats) {
  Random random(40);
  for (DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (std::uint32_t channels : {1U, 3U, 4U}) {
      for (std::uint32_t size : {8U, 70U}) {
        RandomWork work;
        work.stored = {dtype, Layout::nhwc, channels, 32 * size, 32 * size};
        work.delivered = {DType::f16, Layout::nchw, channels, size, size};
        work.samples.emplace_back(work.stored.size_bytes());
        testing::fill_floats(random, dtype, true, work.samples[0]);
        work.sources = {work.samples[0].data()};
        work.crops = {{0, 0, 32 * size, 32 * size, true}};
        expect_same(work);
      }
    }
  }
}

TEST_F(TransformCuda, CastsEveryValueOfSixteenBitsAsTheHostDoes) {
  for (DType from : {DType::f16, DType::bf16}) {
    for (DType to : {DType::f16, DType::bf16, DType::f32}) {
      for (bool normalize : {false, true}) {
        RandomWork work;
        work.stored = {from, Layout::nchw, 1, 256, 256};
        work.delivered = {to, Layout::nhwc, 1, 256, 256};
        work.normalize = normalize;
        work.normalization = {{0.25F, 0, 0}, {3.0F, 1, 1}};
        work.samples.emplace_back(work.stored.size_bytes());
        for (std::uint32_t bits = 0; bits < 65536; ++bits) std::memcpy(&work.samples[0][2 * bits], &bits, 2);
        work.sources = {work.samples[0].data()};
        work.crops = {{0, 0, 256, 256, false}};
        expect_same(work);
      }
    }
  }
}

TEST_F(TransformCuda, CastsFloat32OfEveryExponentAsTheHostDoes) {
  Random random(41);
  for (DType to : {DType::f16, DType::bf16, DType::f32}) {
    RandomWork work;
    work.stored = {DType::f32, Layout::nhwc, 3, 300, 257};
    work.delivered = {to, Layout::nchw, 3, 300, 257};
    for (int i = 0; i < 4; ++i) {
      work.samples.emplace_back(work.stored.size_bytes());
      random.fill(work.samples.back());  // every bit pattern
      work.crops.push_back({0, 0, 257, 300, random.coin()});
    }
    for (const auto& sample : work.samples) work.sources.push_back(sample.data());
    expect_same(work);
  }
}

TEST_F(TransformCuda, UnpacksSmallFramesAsTheHostDoes) {
  Random random(37);
  for (int round = 0; round < 600 && !HasFatalFailure(); ++round) expect_same(random_packed(random, 70));
}

TEST_F(TransformCuda, UnpacksLargeFramesAsTheHostDoes) {
  Random random(38);
  for (int round = 0; round < 150 && !HasFatalFailure(); ++round) expect_same(random_packed(random, 500));
  RandomWork tall;
  for (const auto& [height, width] : {std::pair{65535U, 3U}, std::pair{2U, 65535U}}) {
    tall.stored = tall.delivered = {DType::u8, Layout::nhwc, 3, height, width};
    tall.samples = {std::vector<std::byte>(tall.stored.size_bytes())};
    tall.sources = {tall.samples[0].data()};
    tall.crops = {{0, 0, width, height, false}};
    testing::make_smooth(random, tall);
    expect_same(testing::packed_work(tall));
  }
}

TEST_F(TransformCuda, FindsTheBrokenFramesThatTheHostFinds) {
  Random random(39);
  for (int round = 0; round < 1500 && !HasFatalFailure(); ++round) {
    RandomWork work = random_packed(random, 70);
    for (std::size_t i = 0; i < work.samples.size(); ++i) {
      if (random.coin()) testing::break_frame(random, work.samples[i]);
      work.sources[i] = work.samples[i].data();
      work.frame_bytes[i] = work.samples[i].size();
    }
    expect_same(work);
  }
}

TEST_F(TransformCuda, TransformsManySamplesAtOnce) {
  Random random(35);
  RandomWork work;
  work.stored = {DType::u8, Layout::nhwc, 3, 5, 6};
  work.delivered = {DType::f16, Layout::nchw, 3, 4, 3};
  for (int i = 0; i < 1000; ++i) {
    work.samples.emplace_back(work.stored.size_bytes());
    random.fill(work.samples.back());
    work.crops.push_back(testing::random_crop(random, work.stored, 4, 3));
  }
  for (const auto& sample : work.samples) work.sources.push_back(sample.data());
  expect_same(work);
  for (SampleCrop& crop : work.crops) crop = {0, 0, 6, 5, false};
  expect_same(work);
}

TEST_F(TransformCuda, RefusesABoxOutsideItsSampleAndQueuesNothing) {
  RandomWork work;
  work.stored = {DType::u8, Layout::nhwc, 3, 8, 8};
  work.delivered = {DType::u8, Layout::nhwc, 3, 4, 4};
  work.samples.emplace_back(work.stored.size_bytes());
  work.sources = {work.samples[0].data()};
  work.crops = {{5, 0, 4, 4, false}};
  EXPECT_SHARD_ERROR(by_kernel(work), ErrorCode::invalid_argument, "not inside the stored 8 x 8");
}

TEST_F(TransformCuda, GathersRangesOfAnySizeAndAlignment) {
  Random random(36);
  std::vector<std::byte> source(1 << 20);
  random.fill(source);
  const DeviceBytes from = device_bytes(source.size());
  const DeviceBytes to = device_bytes(source.size());
  require(cudaMemcpy(from.get(), source.data(), source.size(), cudaMemcpyHostToDevice));
  for (std::uint32_t unit : {16U, 4U, 1U}) {
    require(cudaMemset(to.get(), 0xEE, source.size()));
    std::vector<std::byte> expected(source.size(), std::byte{0xEE});
    std::vector<CopyItem> items;
    std::size_t target = 0;
    for (;;) {
      const std::size_t size = random.between(0, 100'000);
      const std::size_t begin = random.between(0, (1 << 20) - 100'000) / unit * unit;
      if (target + size > source.size()) break;
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(begin), size,
                  expected.begin() + static_cast<std::ptrdiff_t>(target));
      items.push_back({to.get() + target, from.get() + begin, size});
      target = (target + size + 31) / 16 * 16 + (unit == 1 ? 3 : 0);
    }
    const PinnedBytes pinned = pinned_bytes(gather_scratch_bytes(items.size()));
    const DeviceBytes scratch = device_bytes(gather_scratch_bytes(items.size()));
    launch_gather(items, pinned.get(), scratch.get(), nullptr);
    std::vector<std::byte> got(source.size());
    require(cudaMemcpy(got.data(), to.get(), got.size(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, expected) << unit;
    // The same ranges out of pinned memory, by one launch for as many as it takes.
    const PinnedBytes host = pinned_bytes(source.size());
    std::copy(source.begin(), source.end(), host.get());
    for (CopyItem& item : items) item.source = host.get() + (item.source - from.get());
    require(cudaMemset(to.get(), 0xEE, source.size()));
    for (std::span<const CopyItem> left = items; !left.empty();) {
      const auto some = left.first(std::min(left.size(), kPinnedItems));
      launch_copy_pinned(some, nullptr);
      left = left.subspan(some.size());
    }
    require(cudaMemcpy(got.data(), to.get(), got.size(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, expected) << unit;
  }
}

// A scratch that was used before keeps its tables; other tables of values replace them.
TEST_F(TransformCuda, BringsTablesOfValuesOnceAndAgainWhenTheyAreOthers) {
  const PinnedBytes pinned = pinned_bytes(std::size_t{1} << 20U);
  const DeviceBytes scratch = device_bytes(std::size_t{1} << 20U);
  const DeviceBytes extra = device_bytes(64);
  const PinnedBytes extra_host = pinned_bytes(64);
  bool there = false;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed / 3);  // each of them three times
    const RandomWork work = testing::random_work(random, 40);
    std::fill_n(extra_host.get(), 64, static_cast<std::byte>(seed));
    const std::vector<std::byte> expected = by_kernel(work);
    EXPECT_EQ(by_kernel(work, nullptr,
                        [&](const TransformWork& on_device) {
                          ASSERT_LE(transform_scratch_bytes(on_device), std::size_t{1} << 20U);
                          there = launch_transform(on_device, pinned.get(), scratch.get(), nullptr,
                                                   {there, {extra.get(), extra_host.get(), 64}});
                        }),
              expected)
        << seed;
    std::vector<std::byte> got(64);
    require(cudaMemcpy(got.data(), extra.get(), 64, cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<std::byte>(64, static_cast<std::byte>(seed)));
  }
}

}  // namespace
}  // namespace shard
