// Random pipelines of up to 6 operations: the CUDA kernel equals the host, bit for bit.
// Skips where there is no device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cuda/kernels/transform.hpp"
#include "support/rounds.hpp"
#include "support/transform/random_program.hpp"
#include "support/transform/random_work.hpp"
#include "transform/augment/host_augment.hpp"
#include "transform/augment/mix.hpp"
#include "transform/host_transform.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomWork;

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

class Memory {
 public:
  Memory(std::size_t size, bool pinned) : pinned_(pinned) {
    require(pinned ? cudaMallocHost(&data_, size + 1) : cudaMalloc(&data_, size + 1));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { pinned_ ? cudaFreeHost(data_) : cudaFree(data_); }
  std::byte* get() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  bool pinned_;
};

class AugmentCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }

  void expect_same(const RandomWork& random, const std::vector<Instruction>& instructions,
                   const std::vector<std::uint32_t>& begins) {
    const std::size_t samples = random.samples.size();
    std::vector<std::byte> host(random.target_bytes());
    TransformWork work = random.work(host.data());
    work.instructions = instructions;
    work.begins = begins;
    std::vector<std::uint32_t> host_broken(samples);
    work.broken = host_broken.data();
    transform_rows(work, 0, samples);

    std::vector<std::unique_ptr<Memory>> blocks;
    std::vector<const std::byte*> sources;
    for (const std::vector<std::byte>& sample : random.samples) {
      blocks.push_back(std::make_unique<Memory>(sample.size(), false));
      require(cudaMemcpy(blocks.back()->get(), sample.data(), sample.size(), cudaMemcpyHostToDevice));
      sources.push_back(blocks.back()->get());
    }
    const Memory target(random.target_bytes(), false);
    const bool with_mix = std::any_of(instructions.begin(), instructions.end(),
                                      [](const Instruction& one) { return one.opcode == Opcode::keep; });
    const Memory augment_scratch(augment_scratch_bytes(random.delivered, samples, with_mix), false);
    const Memory unpacked(random.stored.size_bytes() * samples, false);
    const Memory broken(4 * samples, true);
    std::memset(broken.get(), 0, 4 * samples);
    work.sources = sources;
    work.target = target.get();
    work.augment_scratch = augment_scratch.get();
    work.unpacked = unpacked.get();
    work.broken = reinterpret_cast<std::uint32_t*>(broken.get());
    const Memory pinned(transform_scratch_bytes(work), true);
    const Memory scratch(transform_scratch_bytes(work), false);
    launch_transform(work, pinned.get(), scratch.get(), nullptr);
    require(cudaDeviceSynchronize());
    std::vector<std::byte> device(host.size());
    require(cudaMemcpy(device.data(), target.get(), device.size(), cudaMemcpyDeviceToHost));
    const std::size_t row = random.delivered.size_bytes();
    for (std::size_t i = 0; i < host.size(); ++i)
      if (host[i] != device[i] && host_broken[i / row] == 0) {
        std::string names;
        for (std::uint32_t k = begins[i / row]; k < begins[i / row + 1]; ++k)
          names += std::string(to_string(instructions[k].opcode)) + " ";
        FAIL() << "byte " << i << ": host " << int(host[i]) << ", kernel " << int(device[i]) << ": "
               << random.describe() << ", program of row " << i / row << ": " << names;
      }
  }

  // Every sample has a program of its own, of `most` operations or fewer;
  // the same operations for all samples.
  void expect_same(Random& random, RandomWork work, std::uint32_t most) {
    const SampleSpec pixels = augment::pixels_of(work.delivered);
    const std::vector<Operation> operations = testing::random_operations(random, pixels, most);
    check_operations(pixels, operations);
    std::vector<Instruction> instructions;
    std::vector<std::uint32_t> begins{0};
    for (std::size_t i = 0; i < work.samples.size(); ++i) {
      draw_program(pixels, operations, random.between(0, 1000), 0, i, 0, instructions);
      begins.push_back(static_cast<std::uint32_t>(instructions.size()));
    }
    expect_same(work, instructions, begins);
  }

  static RandomWork random_pixels(Random& random, std::uint32_t largest) {
    RandomWork work;
    do {
      work = testing::random_work(random, largest);
    } while (work.stored.dtype != DType::u8 || work.delivered.height < 16 || work.delivered.width < 16 ||
             work.samples.empty());
    return work;
  }
};

TEST_F(AugmentCuda, EqualsTheHostForRandomPipelines) {
  Random random(81);
  for (std::uint64_t round = 0; round < 400 && !HasFatalFailure(); ++round)
    expect_same(random, random_pixels(random, 80), 6);
}

TEST_F(AugmentCuda, EqualsTheHostForLargeSamples) {
  Random random(82);
  for (std::uint64_t round = 0; round < 60 && !HasFatalFailure(); ++round)
    expect_same(random, random_pixels(random, 400), 6);
}

// One kind after the other, so that a failure names it.
TEST_F(AugmentCuda, EqualsTheHostForEachOperation) {
  Random random(83);
  for (std::uint32_t kind = 0; kind < testing::kOperationKinds; ++kind)
    for (int round = 0; round < 20 && !HasFatalFailure(); ++round) {
      RandomWork work;
      work.stored = work.delivered = {DType::u8, Layout::nhwc, random.one_of({1U, 3U}),
                                      random.between(16, 90), random.between(16, 90)};
      for (int i = 0; i < 5; ++i) {
        work.samples.emplace_back(work.stored.size_bytes());
        random.fill(work.samples.back());
        work.crops.push_back({0, 0, work.stored.width, work.stored.height, random.coin()});
      }
      for (const auto& sample : work.samples) work.sources.push_back(sample.data());
      std::vector<Instruction> instructions;
      std::vector<std::uint32_t> begins{0};
      for (std::uint64_t i = 0; i < 5; ++i) {
        draw_program(work.delivered, {testing::random_operation(random, work.delivered, kind)}, 5, 0, i, 0,
                     instructions);
        begins.push_back(static_cast<std::uint32_t>(instructions.size()));
      }
      expect_same(work, instructions, begins);
    }
}

TEST_F(AugmentCuda, MixesPairsAsTheHostDoes) {
  Random random(85);
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    RandomWork work;
    work.stored = {DType::u8, Layout::nhwc, random.between(1, 4), random.between(1, 60),
                   random.between(1, 60)};
    work.delivered = work.stored;
    work.delivered.dtype = random.one_of({DType::u8, DType::f16, DType::bf16, DType::f32});
    work.delivered.layout = random.one_of({Layout::nchw, Layout::nhwc});
    work.samples.resize(2 * random.between(1, 6));
    work.sources.resize(work.samples.size());
    const MixOptions options{random.coin() ? 0.2 : 0, 1.0};
    std::vector<MixPair> pairs;
    for (std::uint64_t i = 0; i < work.samples.size() / 2; ++i)
      pairs.push_back(draw_mix(work.delivered, options, 1, 0, i));
    // Rows as a transform leaves them: normalised bytes.
    std::vector<std::byte> rows(work.target_bytes());
    const std::size_t elements = work.delivered.elements() * work.samples.size();
    for (std::size_t i = 0; i < elements; ++i) {
      const float value = static_cast<float>(random.between(0, 255)) / 255.0F - 0.4F;
      const std::uint32_t bits = work.delivered.dtype == DType::u8     ? random.between(0, 255)
                                 : work.delivered.dtype == DType::f16  ? f32_to_f16(value)
                                 : work.delivered.dtype == DType::bf16 ? f32_to_bf16(value)
                                                                       : std::bit_cast<std::uint32_t>(value);
      std::memcpy(&rows[i * size_bytes(work.delivered.dtype)], &bits, size_bytes(work.delivered.dtype));
    }
    const Memory target(rows.size(), false);
    require(cudaMemcpy(target.get(), rows.data(), rows.size(), cudaMemcpyHostToDevice));
    TransformWork mixing = work.work(target.get());
    mixing.pairs = pairs;
    const Memory pinned(mix_scratch_bytes(mixing), true);
    const Memory scratch(mix_scratch_bytes(mixing), false);
    launch_mix(mixing, pinned.get(), scratch.get(), nullptr);
    std::vector<std::byte> device(rows.size());
    require(cudaDeviceSynchronize());
    require(cudaMemcpy(device.data(), target.get(), rows.size(), cudaMemcpyDeviceToHost));
    mixing.target = rows.data();
    augment::mix_pairs(mixing, 0, pairs.size());
    ASSERT_EQ(device, rows) << work.describe();
  }
}

// Samples of any size, padded or cut into patches: each has pixels, and a program, of its own size.
struct OwnSizes {
  TransformOptions view;
  TransformWork work;
  std::vector<std::vector<std::byte>> samples;
  std::vector<const std::byte*> sources;
  std::vector<SampleSize> sizes;
  std::vector<SampleCrop> crops;
  std::vector<std::uint32_t> tokens;
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> begins{0};
  std::uint64_t units = 0;  // of work.delivered in the target

  explicit OwnSizes(Random& random) {
    SampleSpec stored{DType::u8, random.one_of({Layout::nhwc, Layout::nchw}), random.one_of({1U, 3U, 3U}), 0,
                      0};
    view.flip = 0.5;
    const bool patches = random.coin();
    view.patch = patches ? random.between(1, 9) : 0;
    view.max_tokens = patches ? random.between(1, 60) : 0;
    view.padded = patches ? 0 : random.between(1, 16);
    if (!patches && random.coin()) {
      view.resize = ResizeKind::longest;
      view.resize_height = view.resize_width = random.between(8, 90);
    }
    work.stored = stored;
    work.delivered = stored.sized(view.patch, view.patch);
    work.delivered.layout = patches ? Layout::nhwc : random.one_of({Layout::nhwc, Layout::nchw});
    work.delivered.dtype = random.one_of({DType::u8, DType::f16, DType::f32});
    work.exact = true;
    work.patch = view.patch;
    work.padded = view.padded != 0;
    work.fill = {9, 8, 7, 6};
    work.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
    const auto operations =
        testing::random_operations(random, {DType::u8, Layout::nhwc, stored.channels, 90, 90}, 6);
    for (std::uint64_t i = random.between(1, 5); i > 0; --i) {
      sizes.push_back({random.between(1, 90), random.between(1, 90)});
      const SampleSpec sized = stored.sized(sizes.back().height, sizes.back().width);
      samples.emplace_back(sized.size_bytes());
      random.fill(samples.back());
      crops.push_back(draw_crop(sized, view, 5, 0, i));
      const SampleCrop& crop = crops.back();
      const SampleSpec own{DType::u8, Layout::nhwc, stored.channels, crop.resized_height, crop.resized_width};
      draw_program(own, fitting(operations), 5, 0, i, 0, instructions);
      begins.push_back(static_cast<std::uint32_t>(instructions.size()));
      if (patches) tokens.push_back(static_cast<std::uint32_t>(units));
      units += patches ? crop.resized_height / view.patch * (crop.resized_width / view.patch) : 1;
      if (patches) continue;
      work.delivered.height = std::max(work.delivered.height, crop.resized_height + random.between(0, 3));
      work.delivered.width = std::max(work.delivered.width, crop.resized_width + random.between(0, 3));
    }
    for (SampleCrop& crop : crops)
      if (!patches) place_padded(crop, work.delivered.width);
    for (const auto& sample : samples) sources.push_back(sample.data());
    work.sources = sources;
    work.sizes = sizes;
    work.crops = crops;
    work.tokens = tokens;
    work.instructions = instructions;
    work.begins = begins;
  }
  // Quarter turns are refused there.
  static std::vector<Operation> fitting(std::vector<Operation> operations) {
    std::erase_if(operations, [](const Operation& one) { return std::holds_alternative<ops::Turns>(one); });
    return operations;
  }
  std::size_t target_bytes() const { return work.delivered.size_bytes() * units; }
};

TEST_F(AugmentCuda, EqualsTheHostForPaddedSamplesAndPatches) {
  Random random(86);
  for (int round = 0; round < 300; ++round) {
    OwnSizes of(random);
    std::vector<std::byte> host(of.target_bytes());
    of.work.target = host.data();
    transform_rows(of.work, 0, of.samples.size());

    std::vector<std::unique_ptr<Memory>> blocks;
    std::vector<const std::byte*> sources;
    for (const std::vector<std::byte>& sample : of.samples) {
      blocks.push_back(std::make_unique<Memory>(sample.size(), false));
      require(cudaMemcpy(blocks.back()->get(), sample.data(), sample.size(), cudaMemcpyHostToDevice));
      sources.push_back(blocks.back()->get());
    }
    const Memory target(host.size(), false);
    const Memory augment_scratch(augment_scratch_bytes(of.work.delivered, of.units, true), false);
    of.work.sources = sources;
    of.work.target = target.get();
    of.work.augment_scratch = augment_scratch.get();
    const Memory pinned(transform_scratch_bytes(of.work), true);
    const Memory scratch(transform_scratch_bytes(of.work), false);
    launch_transform(of.work, pinned.get(), scratch.get(), nullptr);
    require(cudaDeviceSynchronize());
    std::vector<std::byte> device(host.size());
    require(cudaMemcpy(device.data(), target.get(), device.size(), cudaMemcpyDeviceToHost));
    ASSERT_EQ(device, host) << "round " << round << ", patch " << of.view.patch << ", padded "
                            << of.view.padded;
  }
}

TEST_F(AugmentCuda, EqualsTheHostForPackedFrames) {
  Random random(84);
  for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
    RandomWork work = random_pixels(random, 200);
    testing::make_smooth(random, work);
    expect_same(random, testing::packed_work(work), 4);
  }
}

}  // namespace
}  // namespace shard
