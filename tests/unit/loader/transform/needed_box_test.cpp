// What a crop reads of its sample: pixels outside of that change nothing.
#include "transform/needed_box.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/loader/free_dataset.hpp"
#include "transform/host_transform.hpp"

namespace shard::testing {
namespace {

std::vector<std::byte> delivered(TransformWork work, const std::vector<std::byte>& sample) {
  const std::byte* const source = sample.data();
  std::vector<std::byte> target(work.delivered.size_bytes());
  work.sources = {&source, 1};
  work.target = target.data();
  transform_rows(work, 0, 1);
  return target;
}

TEST(NeededBox, HasAllThatAViewShows) {
  std::uint64_t left_out = 0;
  for (const auto& [name, view] : views_of_any_size())
    for (std::uint64_t index = 0; index < 40; ++index) {
      DatasetInfo info;
      info.spec = {DType::u8, Layout::nhwc, 3, 0, 0};
      info.normalization = kNormalization;
      info.shards.push_back({"a", 40, 1000, 0, {{400, 400, 480'000, 480'000}}});
      TransformWork work = plan_transform(info, view);
      const SampleSize size = free_size(index);
      const SampleSpec sized = info.spec.sized(size.height, size.width);
      const SampleCrop crop = draw_crop(sized, view, 3, 1, index);
      work.sizes = {&size, 1};
      work.crops = {&crop, 1};
      std::vector<std::byte> sample = free_sample(info.spec, index);
      const std::vector<std::byte> expected = delivered(work, sample);
      const SampleBox box = needed_box(work, 0);
      ASSERT_TRUE(box.width > 0 && box.left + box.width <= size.width);
      ASSERT_TRUE(box.height > 0 && box.top + box.height <= size.height);
      for (std::uint32_t y = 0; y < size.height; ++y)
        for (std::uint32_t x = 0; x < size.width; ++x) {
          if (y >= box.top && y < box.top + box.height && x >= box.left && x < box.left + box.width) continue;
          for (std::uint32_t c = 0; c < 3; ++c)
            sample[(std::size_t{y} * size.width + x) * 3 + c] ^= std::byte{255};
          ++left_out;
        }
      ASSERT_EQ(delivered(work, sample), expected) << name << ", sample " << index;
    }
  EXPECT_GT(left_out, 100'000U);
}

TEST(NeededBox, OfTwoHasBoth) {
  EXPECT_EQ(united({10, 20, 5, 5}, {2, 22, 4, 30}), (SampleBox{2, 20, 13, 32}));
  EXPECT_EQ(united({1, 1, 9, 9}, {2, 2, 3, 3}), (SampleBox{1, 1, 9, 9}));
}

}  // namespace
}  // namespace shard::testing
