// ExactFloats, by the transform that uses it: against plain loops in doubles, for every dtype and any number
// of channels.
#include "transform/exact/exact_floats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/transform/expect_reference.hpp"
#include "support/transform/plain_values.hpp"
#include "support/transform/random_exact_work.hpp"
#include "transform/host_transform.hpp"

namespace shard {
namespace {

using testing::Random;
using testing::RandomWork;
using testing::transformed;

std::vector<double> planes_of_row(const RandomWork& work, const std::vector<std::byte>& target,
                                  std::size_t row) {
  const auto size = static_cast<std::ptrdiff_t>(work.delivered.size_bytes());
  const auto begin = target.begin() + static_cast<std::ptrdiff_t>(row) * size;
  return testing::planes_of(work.delivered, {begin, begin + size});
}

TEST(ExactFloats, ValuesAreThoseOfPlainLoops) {
  Random random(31);
  std::size_t shrunk = 0;
  for (int i = 0; i < 400; ++i) {
    RandomWork work = testing::random_exact_work(random, i % 20 == 0 ? 300 : 50, false);
    if (work.stored.dtype == DType::u8 && work.stored.channels <= 4) continue;  // are resized in bytes
    work.normalize = false;
    work.delivered.dtype = work.stored.dtype;
    const std::vector<std::byte> target = transformed(work);
    for (std::size_t row = 0; row < work.samples.size(); ++row) {
      const SampleCrop& crop = work.crops[row];
      const SampleSpec sized = work.stored.sized(work.sizes[row].height, work.sizes[row].width);
      std::vector<double> expected =
          testing::plain_values(sized, work.samples[row], crop, work.delivered.height, work.delivered.width,
                                work.filter, work.fill);
      const std::vector<double> found = planes_of_row(work, target, row);
      const bool whole = work.stored.dtype == DType::u8 || work.stored.dtype == DType::u16;
      const double most = work.stored.dtype == DType::u8 ? 255 : 65535;
      for (std::size_t e = 0; e < found.size(); ++e) {
        const double wanted = whole ? std::clamp(expected[e], 0.0, most) : expected[e];
        // f16 has 11 bits, bf16 8.
        const double step = work.stored.dtype == DType::f16    ? 1e-3
                            : work.stored.dtype == DType::bf16 ? 8e-3
                                                               : 4e-6;
        const double bound = whole ? 0.55 : step * std::max(4.0, std::abs(wanted));
        ASSERT_NEAR(found[e], wanted, bound) << "element " << e << ": " << work.describe();
      }
      shrunk += crop.height > 20 * crop.resized_height ? 1 : 0;
    }
  }
  EXPECT_GT(shrunk, 3U);
}

TEST(ExactFloats, NotANumberReachesOnlyWhatSeesIt) {
  constexpr std::uint32_t kSide = 12;
  RandomWork work;
  work.stored = {DType::f32, Layout::nhwc, 2, 0, 0};
  work.delivered = {DType::f32, Layout::nchw, 2, kSide, kSide};
  std::vector<float> values(2 * kSide * kSide, 1.0F);
  values[2 * (5 * kSide + 7)] = std::numeric_limits<float>::quiet_NaN();
  values[2 * (9 * kSide + 2) + 1] = std::numeric_limits<float>::infinity();
  work.samples.emplace_back(values.size() * sizeof(float));
  std::memcpy(work.samples[0].data(), values.data(), work.samples[0].size());
  work.sources = {work.samples[0].data()};
  work.sizes = {{kSide, kSide}};
  const auto differing = [&](std::uint32_t height, std::uint32_t width) {
    SampleCrop crop{0, 0, kSide, kSide, false};
    crop.resized_height = work.delivered.height = height;
    crop.resized_width = work.delivered.width = width;
    work.crops = {crop};
    std::size_t count = 0;
    for (const double value : planes_of_row(work, transformed(work), 0))
      count += std::abs(value - 1) < 1e-5 ? 0 : 1;
    return count;
  };
  for (const ResizeFilter filter :
       {ResizeFilter::bilinear, ResizeFilter::bicubic, ResizeFilter::box, ResizeFilter::lanczos}) {
    work.filter = filter;
    EXPECT_EQ(differing(kSide, kSide), 2U) << "a copy";
  }
  work.filter = ResizeFilter::bilinear;
  EXPECT_EQ(differing(kSide, 2 * kSide), 2U * 4) << "each pixel is seen by four of twice as many columns";
  EXPECT_EQ(differing(3 * kSide, kSide), 2U * 5) << "by five rows; the weights of the outer neighbours are 0";
  work.filter = ResizeFilter::box;
  EXPECT_EQ(differing(kSide / 2, kSide / 2), 2U);
}

}  // namespace
}  // namespace shard
