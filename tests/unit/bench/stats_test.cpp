#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "commands/convert/convert_bench.hpp"
#include "data/random.hpp"
#include "expect_error.hpp"
#include "harness/csv.hpp"
#include "harness/machine.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"
#include "harness/subcommand.hpp"

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

ConvertCase case_of(unsigned jobs, const std::vector<double>& decode, const std::vector<double>& convert) {
  ConvertCase one;
  one.jobs = jobs;
  for (const double seconds : decode) one.decodes.push_back({seconds, 2 * seconds});
  for (const double seconds : convert) {
    ConvertRun run;
    run.elapsed = {seconds, 4 * seconds};
    run.summary.size_bytes = 10'000'000;
    run.summary.stages.preprocess = seconds / 2;
    one.converts.push_back(run);
  }
  return one;
}

nlohmann::ordered_json report_of(std::uint64_t images, std::vector<ConvertCase> cases,
                                 std::uint64_t excluded = 0, double load = 0) {
  ConvertBenchResult result;
  result.images = result.distinct = images;
  result.excluded = excluded;
  result.bytes = result.pixels = 1;
  result.cases = std::move(cases);
  nlohmann::ordered_json json{{"machine", {{"cores", 2}, {"load_at_start", load}}}};
  add_json(json, {}, result);
  return json;
}

TEST(ConvertReport, TakesRatiosRepeatByRepeat) {
  // The second repeat ran on a machine half as fast: the rates halve, the ratio stays.
  const auto one = report_of(100, {case_of(2, {1.0, 2.0, 1.0}, {1.25, 2.5, 1.25})})["cases"][0];
  EXPECT_DOUBLE_EQ(one["ratio"]["median"], 0.8);
  EXPECT_DOUBLE_EQ(one["ratio"]["min"], 0.8);
  EXPECT_DOUBLE_EQ(one["ratio"]["max"], 0.8);
  EXPECT_DOUBLE_EQ(one["cpu_ratio"]["median"], 0.4);
  EXPECT_DOUBLE_EQ(one["decode"]["images_per_second"]["median"], 100.0);
  EXPECT_DOUBLE_EQ(one["convert"]["images_per_second"]["min"], 40.0);
  EXPECT_DOUBLE_EQ(one["output_mb_per_second"]["median"], 8.0);
}

TEST(ConvertReport, ShowsTheStagesOfTheRunOfMedianTime) {
  const PageTable stages =
      convert_section(report_of(10, {case_of(1, {1.0, 1.0, 1.0}, {9.0, 2.0, 4.0})})).tables.at(1);
  // Of the run of 4 s: 2 s for 10 images.
  EXPECT_EQ(stages.rows.at(1).cells, (std::vector<std::string>{"decode and resize", "200", "50\u00a0%"}));
}

TEST(ConvertReport, KeepsEverySampleInJsonAndTheScaling) {
  const auto json = report_of(100, {case_of(1, {1.0}, {2.0}), case_of(2, {0.5}, {1.0})});
  EXPECT_EQ(json["cases"][0]["decode"]["runs"][0]["seconds"], 1.0);
  EXPECT_EQ(json["cases"][1]["convert"]["runs"][0]["seconds"], 1.0);
  EXPECT_EQ(json["cases"][1]["ratio"]["median"], 0.5);
  EXPECT_EQ(json["scaling"]["convert"], 2.0);
}

TEST(ConvertReport, WarnsWhatMakesFiguresDoubtful) {
  std::string all;
  for (const std::string& warning : warnings(report_of(10, {case_of(8, {0.1}, {0.2})}, 3, 5)))
    all += warning + "\n";
  EXPECT_NE(all.find("8 threads on 2 cores: give --jobs 2"), std::string::npos) << all;
  EXPECT_NE(all.find("too short to trust: give --count 100"), std::string::npos) << all;
  EXPECT_NE(all.find("load 5.0"), std::string::npos) << all;
  EXPECT_NE(all.find("3 files took no part"), std::string::npos) << all;
}

TEST(Csv, HasAColumnForEachFieldOfAnyRowAndQuotesWhatItMust) {
  const nlohmann::ordered_json report{
      {"rows",
       {{{"name", "a, \"b\"\nc"}, {"rate", 1.5}, {"samples", {1, 2}}},
        {{"name", "d"}, {"limit", {{"is", "disk,raw"}, {"rate", nullptr}}}, {"rate", 2e9}, {"ok", true}},
        {{"rate", std::nan("")}, {"problem", "gone"}}}},
      {"batches", {{{"size", 4}, {"rate", 3}}}}};
  EXPECT_EQ(to_csv(report),
            "name,rate,limit.is,limit.rate,ok,problem,size\n"
            "\"a, \"\"b\"\"\nc\",1.5,,,,,\n"
            "d,2000000000.0,\"disk,raw\",,true,,\n"
            ",,,,,gone,\n"
            ",3,,,,,4\n");
}

TEST(Csv, IsOneRowOfAReportWithoutRows) {
  EXPECT_EQ(to_csv({{"name", "load"}, {"samples", {1, 2}}, {"machine", {{"cores", 2}}}, {"batches", 7}}),
            "name,machine.cores,batches\nload,2,7\n");
}

TEST(StepText, SaysHowLongTheRestTakesOnceAStepIsDone) {
  EXPECT_EQ(step_text("repeat", 0, 5, 100), "repeat 1 of 5");
  EXPECT_EQ(step_text("repeat", 2, 5, 8), "repeat 3 of 5, about 12.0 s left");
  EXPECT_EQ(step_text("size", 5, 5, 8), "size 5 of 5");
}

TEST(QuickOption, LowersWhatIsHigherWhereverItStands) {
  const auto parsed = [](std::vector<std::string> arguments) {
    CLI::App app;
    unsigned repeat = 5;
    double seconds = 2;
    add_repeat_option(app, repeat);
    add_seconds_option(app, seconds);
    add_quick_option(app, repeat, seconds, 0.5);
    std::reverse(arguments.begin(), arguments.end());  // as this parser wants it
    app.parse(arguments);
    return std::pair(repeat, seconds);
  };
  EXPECT_EQ(parsed({}), std::pair(5U, 2.0));
  EXPECT_EQ(parsed({"--quick"}), std::pair(3U, 0.5));
  EXPECT_EQ(parsed({"--quick", "--repeat", "9", "--seconds", "60"}), std::pair(3U, 0.5));
  EXPECT_EQ(parsed({"--repeat", "2", "--seconds", "0.1", "--quick"}), std::pair(2U, 0.1));
}

TEST(Machine, SaysWhatTheSystemSays) {
  const auto m = machine();
  EXPECT_GE(m["cores"], 1U);
  EXPECT_FALSE(m["cpu"].get<std::string>().empty());
  EXPECT_TRUE(m["kernel"].get<std::string>().starts_with("Linux")) << m;
  EXPECT_GT(m["memory_bytes"], 1U << 20U);
  EXPECT_NE(m["decoders"].get<std::string>().find("libjpeg"), std::string::npos) << m;
}

TEST(Random, IsAFunctionOfSeedItemAndPurpose) {
  const std::uint64_t first = Random(1, 2, 3).bits();
  EXPECT_EQ(Random(1, 2, 3).bits(), first);
  EXPECT_NE(Random(2, 2, 3).bits(), first);
  EXPECT_NE(Random(1, 3, 3).bits(), first);
  EXPECT_NE(Random(1, 2, 4).bits(), first);
}

TEST(Random, StaysInItsBoundsWithTheMomentsItStates) {
  Random random(0, 0, 0);
  double sum = 0;
  double squares = 0;
  for (int k = 0; k < 100'000; ++k) {
    ASSERT_LT(random.below(7), 7U);
    const float u = random.uniform();
    ASSERT_TRUE(u >= 0.0F && u < 1.0F);
    const double b = random.bell();
    sum += b;
    squares += b * b;
  }
  EXPECT_NEAR(sum / 1e5, 0.0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1.0, 0.02);
}

}  // namespace
}  // namespace shard::bench
