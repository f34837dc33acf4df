// Philox, and the numbers that are drawn for a sample.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "transform/philox.hpp"

namespace shard {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123 (kat_vectors).
TEST(Philox, GivesThePublishedWords) {
  constexpr std::uint32_t kOnes = 0xFFFFFFFFU;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627E8D5U, 0xE169C58DU, 0xBC57AC4CU, 0x9B00DBD8U}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408F276DU, 0x41C83B0EU, 0xA20BC7C6U, 0x6D5451FDU}));
  EXPECT_EQ(philox4x32({0x243F6A88U, 0x85A308D3U, 0x13198A2EU, 0x03707344U}, {0xA4093822U, 0x299F31D0U}),
            (Words{0xD16CFE09U, 0x94FDCCEBU, 0x5001E420U, 0x24126EA1U}));
}

TEST(SampleRandom, DrawsWordsInTheOrderOfTheBlocks) {
  SampleRandom random(1, 2, 3);
  for (std::uint32_t block = 0; block < 3; ++block)
    for (std::uint32_t word : philox4x32({3, 0, 2, block}, {1, 0}))
      ASSERT_EQ(random.uniform(), word * 0x1p-32);
}

TEST(SampleRandom, StaysBelowItsBound) {
  SampleRandom random(4, 0, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) ++counts.at(random.below(7));
  for (int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.below(1), 0U);
}

}  // namespace
}  // namespace shard
