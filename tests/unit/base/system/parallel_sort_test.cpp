#include "base/system/parallel_sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace shard {
namespace {

TEST(ParallelSort, GivesTheOrderOfOneThreadForAnyNumberOfThreads) {
  std::mt19937 random(1);
  for (const std::size_t count : {0U, 1U, 2U, 4095U, 4096U, 8193U, 40'001U})
    for (const unsigned threads : {0U, 1U, 2U, 3U, 7U, 16U}) {
      std::vector<std::string> items;
      for (std::size_t i = 0; i < count; ++i) items.push_back(std::to_string(random() % 20'000));
      std::vector<std::string> expected = items;
      std::sort(expected.begin(), expected.end());
      parallel_sort(threads, items, std::less<>());
      EXPECT_EQ(items, expected) << count << " items, " << threads << " threads";
    }
}

TEST(ParallelSort, MergesPiecesThatOverlapAndLeavesThoseThatDoNot) {
  std::vector<int> items;
  for (int i = 0; i < 50'000; ++i) items.push_back(i);
  const std::vector<int> expected = items;
  std::rotate(items.begin(), items.begin() + 10, items.end());  // the last piece has the smallest items
  parallel_sort(5, items, std::less<>());
  EXPECT_EQ(items, expected);
  std::reverse(items.begin(), items.end());
  parallel_sort(5, items, std::less<>());
  EXPECT_EQ(items, expected);
}

}  // namespace
}  // namespace shard
