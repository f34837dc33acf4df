// What shardbench convert reports of its runs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "commands/convert/convert_bench.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

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

}  // namespace
}  // namespace shard::bench
