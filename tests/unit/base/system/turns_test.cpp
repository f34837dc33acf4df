#include "base/system/turns.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace shard::testing {
namespace {

TEST(Turns, OfOneNumberOneThreadAtATimeHasIt) {
  Turns turns;
  std::array<int, 2> made{};  // without a lock of its own
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const Turns::Turn turn(turns, i % 2);
        ++made[i % 2];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, (std::array{4000, 4000}));
}

TEST(Turns, OfDifferentNumbersDoNotWait) {
  Turns turns;
  const Turns::Turn mine(turns, 1);
  std::atomic<bool> there = false;
  std::thread([&] {
    const Turns::Turn other(turns, 2);
    there = true;
  }).join();
  EXPECT_TRUE(there);
}

}  // namespace
}  // namespace shard::testing
