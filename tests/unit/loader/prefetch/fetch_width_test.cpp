// FetchWidth on lines whose rate is known.
#include "prefetch/fetch_width.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace shard {
namespace {

// What each width was used for, in seconds, while `shards` of 10 MB came one after the other;
// the line carries rate(width) bytes per second.
template <typename Rate>
std::map<unsigned, double> widths_of(FetchWidth& width, int shards, Rate rate) {
  constexpr double kBytes = 1e7;
  std::map<unsigned, double> seconds;
  static double now = 0, received = 0;
  for (int i = 0; i < shards; ++i) {
    const double takes = kBytes / rate(width.now());
    seconds[width.now()] += takes;
    now += takes;
    received += kBytes;
    width.arrived(static_cast<std::uint64_t>(received), now);
  }
  return seconds;
}

double share(const std::map<unsigned, double>& seconds, unsigned least) {
  double wide = 0, all = 0;
  for (const auto& [width, time] : seconds) {
    all += time;
    wide += width >= least ? time : 0;
  }
  return wide / all;
}

TEST(FetchWidth, StaysNarrowWhereAFewFillTheLine) {
  FetchWidth width;
  const auto seconds = widths_of(width, 3000, [](unsigned) { return 125e6; });
  EXPECT_LT(share(seconds, FetchWidth::kFirst + 1), 0.08);
}

TEST(FetchWidth, GrowsWhereEachShardIsHeldUp) {
  FetchWidth width;
  const auto line = [](unsigned wide) { return 50e6 * wide; };
  EXPECT_EQ(width.now(), FetchWidth::kFirst);
  widths_of(width, 120, line);
  EXPECT_EQ(width.now(), FetchWidth::kMost);
  EXPECT_GT(share(widths_of(width, 5000, line), FetchWidth::kMost), 0.85);
}

TEST(FetchWidth, GrowsAsFarAsItHelps) {
  FetchWidth width;
  const auto seconds = widths_of(width, 3000, [](unsigned wide) { return 50e6 * std::min(wide, 8U); });
  EXPECT_GT(share(seconds, 8), 0.6);
  EXPECT_LT(share(seconds, 13), 0.1);
}

TEST(FetchWidth, BecomesNarrowAgainWhenTheLineChanges) {
  FetchWidth width;
  widths_of(width, 120, [](unsigned wide) { return 50e6 * wide; });
  ASSERT_EQ(width.now(), FetchWidth::kMost);
  EXPECT_LT(share(widths_of(width, 5000, [](unsigned) { return 125e6; }), FetchWidth::kFirst + 1), 0.25);
}

// The first shard that a batch waits for comes sooner if few share the line.
TEST(FetchWidth, IsNarrowerAfterAPause) {
  FetchWidth width;
  width.paused();
  const auto seconds = widths_of(width, 3000, [](unsigned) { return 125e6; });
  EXPECT_LT(share(seconds, FetchWidth::kLeast + 1), 0.08);
}

TEST(FetchWidth, IsNotWidenedWhileShardsAreNotWanted) {
  FetchWidth width;
  for (int i = 0; i < 1000; ++i) {
    widths_of(width, i % 5 + 1, [](unsigned wide) { return 50e6 * wide; });
    width.paused();
    ASSERT_EQ(width.now(), FetchWidth::kLeast);
  }
}

}  // namespace
}  // namespace shard
