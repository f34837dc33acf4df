// A report as CSV.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/csv.hpp"

namespace shard::bench {
namespace {

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

}  // namespace
}  // namespace shard::bench
