// Median and spread of samples.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "harness/stats.hpp"
#include "support/expect_error.hpp"

namespace shard::bench {
namespace {

TEST(Stats, TakesTheMiddleOfAnOddNumberInAnyOrder) {
  const Stats s = summarize(std::array{5.0, 1.0, 9.0});
  EXPECT_EQ(s.count, 3U);
  EXPECT_EQ(s.median, 5.0);
  EXPECT_EQ(s.min, 1.0);
  EXPECT_EQ(s.max, 9.0);
}

TEST(Stats, TakesTheMeanOfTheTwoInTheMiddleOfAnEvenNumber) {
  EXPECT_EQ(summarize(std::array{4.0, 1.0, 100.0, 2.0}).median, 3.0);
}

TEST(Stats, IsTheSampleItselfWhenThereIsOne) {
  const Stats s = summarize(std::array{7.5});
  EXPECT_EQ(s.median, 7.5);
  EXPECT_EQ(s.spread(), 0.0);
}

TEST(Stats, RefusesNoSamplesAndNan) {
  EXPECT_SHARD_ERROR(summarize({}), ErrorCode::invalid_argument, "no samples");
  EXPECT_SHARD_ERROR(summarize(std::array{1.0, std::numeric_limits<double>::quiet_NaN()}),
                     ErrorCode::invalid_argument, "NaN");
}

TEST(Stats, MeasuresTheSpreadAgainstTheMedian) {
  EXPECT_DOUBLE_EQ(summarize(std::array{90.0, 100.0, 120.0}).spread(), 0.3);
  EXPECT_EQ(summarize(std::array{0.0, 0.0}).spread(), 0.0);
}

TEST(Stats, WarnsOfAWideSpreadAloneAndSaysWhatToDo) {
  EXPECT_FALSE(spread_warning("decode", summarize(std::array{98.0, 100.0, 107.0})).has_value());
  const auto warning = spread_warning("decode", summarize(std::array{90.0, 100.0, 120.0}));
  ASSERT_TRUE(warning.has_value());
  EXPECT_NE(warning->find("decode: the 3 samples differ by 30 %"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("--repeat"), std::string::npos) << *warning;
}

}  // namespace
}  // namespace shard::bench
