// The result of `shardbench convert` as JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands/convert/convert_bench.hpp"
#include "harness/machine.hpp"
#include "harness/stats.hpp"

namespace shard::bench {

// Per thread count. Ratios are taken repeat by repeat, so that what slows both down at once cancels out.
struct ConvertFigures {
  unsigned jobs = 0;
  Stats decode_rate;     // images/s
  Stats convert_rate;    // images/s, of the whole conversion
  Stats ratio;           // conversion / decode
  Stats cpu_ratio;       // CPU time of decode / of the conversion
  Stats output_mb_rate;  // MB/s of shards, 1 MB = 1e6 B
  // Of the run of median time: seconds of thread time, all threads together.
  convert::StageSeconds stages;
  double median_seconds = 0;
  double scan_seconds = 0;
};
ConvertFigures figures(const ConvertCase& one, std::uint64_t images);

// Wide spreads, a busy machine, too few pictures: what makes the figures doubtful, and what to do.
std::vector<std::string> warnings(const ConvertBenchResult& result, const Machine& machine);

void add_json(nlohmann::ordered_json& json, const ConvertBenchOptions& options,
              const ConvertBenchResult& result, const Machine& machine);

}  // namespace shard::bench
