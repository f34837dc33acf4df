// Stream::follow() on the host, against the interpreter of augmentation,
// which does the same to the pixels of images.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/expect_error.hpp"
#include "support/transform/plain_values.hpp"
#include "support/transform/random_targets.hpp"
#include "transform/targets/host_targets.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomTargets;

std::vector<std::byte> follow(const RandomTargets& random) {
  std::vector<std::byte> target(random.target_bytes(), std::byte{0xEE});
  std::vector<std::byte> scratch(random.target_bytes());
  const TargetWork work = random.work(target.data(), scratch.data());
  targets::check_targets(work);
  targets::follow_rows(work, 0, random.samples.size());
  return target;
}

// u8 [row, column, channel], of the view's size before a crop of this size.
RandomTargets byte_images(Random& random, bool bilinear) {
  RandomTargets result;
  do {
    result = testing::random_targets(random, 40);
  } while (result.plan.bilinear != bilinear || result.stored.dtype != DType::u8);
  result.stored.layout = result.plan.stored.layout = result.plan.layout = Layout::nhwc;
  result.pairs.clear();
  return result;
}

// The steps with the fill and the interpolation of the work.
std::vector<Instruction> program_of(const RandomTargets& random, std::size_t row) {
  std::vector<Instruction> program(random.steps.begin() + random.begins[row],
                                   random.steps.begin() + random.begins[row + 1]);
  for (Instruction& step : program) {
    if (step.opcode == Opcode::affine || step.opcode == Opcode::perspective) {
      step.whole[0] = random.plan.bilinear ? 1 : 0;
      step.whole[1] = 1;
      std::fill_n(step.real.begin() + (step.opcode == Opcode::affine ? 6 : 8), 4, random.plan.fill);
    }
    if (step.opcode == Opcode::shift) std::fill_n(step.real.begin(), 4, random.plan.fill);
  }
  return program;
}

TEST(Targets, NearestIsWhatTheInterpreterMakesOfTheCroppedImage) {
  Random random(11);
  std::size_t steps = 0;
  for (int i = 0; i < 300; ++i) {
    RandomTargets work = byte_images(random, false);
    for (SampleCrop& crop : work.crops) {
      crop.width = work.plan.width = std::min(work.plan.width, work.stored.width);
      crop.height = work.plan.height = std::min(work.plan.height, work.stored.height);
      crop.left = crop.top = 0;
    }
    // Quarter turns were drawn for the size before.
    if (work.plan.width != work.plan.height &&
        std::any_of(work.steps.begin(), work.steps.end(), [](const auto& step) {
          return step.opcode == Opcode::quarter_turns && step.whole[0] != 2;
        }))
      continue;
    const std::vector<std::byte> made = follow(work);
    const std::uint32_t channels = work.stored.channels;
    const SampleSpec view{DType::u8, Layout::nhwc, channels, work.plan.height, work.plan.width};
    for (std::size_t row = 0; row < work.samples.size(); ++row) {
      std::vector<std::uint8_t> pixels(view.elements());
      for (std::uint32_t y = 0; y < view.height; ++y)
        for (std::uint32_t x = 0; x < view.width; ++x) {
          const std::uint32_t from = work.crops[row].flip ? view.width - 1 - x : x;
          std::memcpy(&pixels[(y * view.width + x) * channels],
                      &work.samples[row][(y * work.stored.width + from) * channels], channels);
        }
      const std::vector<Instruction> program = program_of(work, row);
      steps += program.size();
      run_program(view, program, pixels.data());
      ASSERT_EQ(std::memcmp(pixels.data(), made.data() + row * pixels.size(), pixels.size()), 0)
          << work.describe() << ", row " << row;
    }
  }
  EXPECT_GT(steps, 300U);
}

TEST(Targets, SamplesOfAnySizeLieWhereTheyArePlaced) {
  Random random(16);
  std::size_t filled = 0;
  for (int i = 0; i < 300; ++i) {
    RandomTargets work = testing::random_targets(random, 40, true);
    work.pairs.clear();
    work.steps.clear();
    std::fill(work.begins.begin(), work.begins.end(), 0);
    const std::vector<std::byte> made = follow(work);
    SampleSpec view = work.plan.stored.sized(work.plan.height, work.plan.width);
    view.layout = work.plan.layout;
    for (std::size_t row = 0; row < work.samples.size(); ++row) {
      const SampleSpec sized = work.plan.stored.sized(work.sizes[row].height, work.sizes[row].width);
      const auto expected = testing::plain_values(sized, work.samples[row], work.crops[row], view.height,
                                                  view.width, std::nullopt, work.plan.fill);
      const auto begin = made.begin() + static_cast<std::ptrdiff_t>(row * view.size_bytes());
      const auto found =
          testing::planes_of(view, {begin, begin + static_cast<std::ptrdiff_t>(view.size_bytes())});
      ASSERT_EQ(found, expected) << work.describe() << ", row " << row;
      filled += found.front() == work.plan.fill ? 1 : 0;
    }
  }
  EXPECT_GT(filled, 100U);
}

TEST(Targets, BilinearIsWhatTheInterpreterMakesOfBytes) {
  Random random(12);
  for (int i = 0; i < 300; ++i) {
    const RandomTargets work = byte_images(random, true);
    const std::vector<std::byte> made = follow(work);
    for (std::size_t row = 0; row < work.samples.size(); ++row) {
      std::vector<std::uint8_t> pixels(work.stored.elements());
      std::memcpy(pixels.data(), work.samples[row].data(), pixels.size());
      run_program(work.stored, program_of(work, row), pixels.data());
      ASSERT_EQ(std::memcmp(pixels.data(), made.data() + row * pixels.size(), pixels.size()), 0)
          << work.describe() << ", row " << row;
    }
  }
}

TEST(Targets, CutmixTakesItsBoxFromTheNeighbour) {
  Random random(13);
  std::size_t mixed = 0;
  for (int i = 0; i < 100; ++i) {
    RandomTargets work = testing::random_targets(random, 32);
    if (work.pairs.empty()) continue;
    ++mixed;
    const std::vector<std::byte> made = follow(work);
    const std::vector<MixPair> pairs = std::exchange(work.pairs, {});
    const std::vector<std::byte> alone = follow(work);
    const std::size_t size = size_bytes(work.stored.dtype);
    const bool planar = work.plan.layout == Layout::nchw;
    for (std::size_t element = 0; element < made.size() / size; ++element) {
      const std::size_t of_row = work.plan.row_bytes() / size;
      const std::size_t row = element / of_row;
      const std::size_t pixel = planar ? element % of_row % (work.plan.height * work.plan.width)
                                       : element % of_row / work.stored.channels;
      const MixPair& box = pairs[row / 2];
      const std::size_t x = pixel % work.plan.width;
      const std::size_t y = pixel / work.plan.width;
      const bool inside = x >= box.left && x < box.right && y >= box.top && y < box.bottom;
      const std::size_t from = inside ? element % of_row + (row ^ 1U) * of_row : element;
      ASSERT_EQ(std::memcmp(&made[element * size], &alone[from * size], size), 0) << work.describe();
    }
  }
  EXPECT_GT(mixed, 10U);
}

TEST(Targets, EveryDTypeMovesAsItsBytesDo) {
  // Whatever the dtype, nearest picks the same elements.
  Random random(14);
  for (int i = 0; i < 100; ++i) {
    RandomTargets wide = testing::random_targets(random, 32);
    if (wide.plan.bilinear || wide.stored.dtype != DType::f32) continue;
    for (auto& sample : wide.samples)
      for (std::size_t e = 0; e < sample.size() / 4; ++e) {
        const auto value = static_cast<float>(std::to_integer<int>(sample[4 * e]));
        std::memcpy(&sample[4 * e], &value, 4);
      }
    RandomTargets bytes = wide;
    bytes.stored.dtype = bytes.plan.stored.dtype = DType::u8;
    bytes.sources.clear();
    for (auto& sample : bytes.samples) {
      for (std::size_t e = 0; e < sample.size() / 4; ++e) {
        float value = 0;
        std::memcpy(&value, &sample[4 * e], 4);
        sample[e] = static_cast<std::byte>(value);
      }
      sample.resize(sample.size() / 4);
      bytes.sources.push_back(sample.data());
    }
    const std::vector<std::byte> floats = follow(wide);
    const std::vector<std::byte> integers = follow(bytes);
    for (std::size_t e = 0; e < integers.size(); ++e) {
      float value = 0;
      std::memcpy(&value, &floats[4 * e], 4);
      ASSERT_EQ(value, static_cast<float>(std::to_integer<int>(integers[e]))) << wide.describe();
    }
  }
}

TEST(Targets, RefusesWorksThatDoNotFitTogether) {
  Random random(15);
  RandomTargets good;
  do {
    good = testing::random_targets(random, 20);
  } while (good.plan.bilinear || good.pairs.empty());
  std::vector<std::byte> target(good.target_bytes());
  const auto refused = [&](const RandomTargets& bad, const char* piece) {
    EXPECT_SHARD_ERROR(targets::check_targets(bad.work(target.data(), nullptr)), ErrorCode::invalid_argument,
                       piece);
  };
  RandomTargets bad = good;
  bad.crops.pop_back();
  refused(bad, "crops");
  bad = good;
  bad.crops[0].left = bad.stored.width;
  refused(bad, "is not inside of a sample");
  bad = good;
  bad.crops[0].resized_width = 9;
  refused(bad, "is not possible");
  bad = good;
  bad.sizes.resize(bad.samples.size());
  refused(bad, "sizes");
  bad = good;
  bad.begins.back() += 1;
  refused(bad, "its steps are");
  bad = good;
  bad.steps.push_back({Opcode::invert});
  bad.begins.back() = static_cast<std::uint32_t>(bad.steps.size());
  refused(bad, "moves no pixels");
  bad = good;
  bad.pairs[0].right = bad.plan.width + 1;
  refused(bad, "a box of cutmix");
  bad = good;
  bad.plan.stored.dtype = DType::i64;
  refused(bad, "have no pixels to follow");
}

}  // namespace
}  // namespace shard
