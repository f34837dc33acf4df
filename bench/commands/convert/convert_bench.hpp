// Compares conversion with pure decoding: the same photos, the same threads, alternating in one run.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/photo_set.hpp"
#include "harness/measure.hpp"
#include "shard/convert/convert.hpp"

namespace shard::bench {

struct ConvertBenchOptions {
  std::string images;
  std::string preset = "train";  // or "eval": as shardify's
  std::string size;              // "original": samples of any size; empty: the preset's
  std::string codec;             // as shardify's; empty: the preset's
  unsigned jobs = 0;             // 0: one thread per core
  unsigned repeat = 5;
  std::uint64_t count = 0;    // pictures; 0: every file once
  std::uint64_t most = 0;     // if count is 0: at most this many files; 0: all
  bool scaling = false;       // also on one thread
  std::filesystem::path out;  // data sets go below it, and are removed; empty: the folder for temporary files
};

struct ConvertRun {
  Elapsed elapsed;  // of convert::run as a whole: scan, plan, decode, write, fsync, dataset.json
  convert::Summary summary;
};

// On one number of threads: repeat k of decode came just before repeat k of convert.
struct ConvertCase {
  unsigned jobs = 0;
  std::vector<Elapsed> decodes;
  std::vector<ConvertRun> converts;
};

struct ConvertBenchResult {
  std::uint64_t images = 0;
  std::uint64_t distinct = 0;
  std::uint64_t excluded = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pixels = 0;
  // Compared with what decode() and run() of shard::image give, before anything was timed.
  std::uint64_t checked_samples = 0;
  std::vector<ConvertCase> cases;  // ascending threads
};

// The options of a conversion as shardify's `--preset`, `--size` and `--codec` set them; empty: not given.
// Errors: invalid_argument.
convert::Options preset_options(const std::string& preset, const std::string& size = {},
                                const std::string& codec = {});

// `note` gets what is done before the first repeat. `done` is called after each repeat. Errors: those of
// convert::run; corrupt if the converted data set is wrong; cancelled.
ConvertBenchResult bench_convert(const ConvertBenchOptions& options, const std::atomic<bool>& cancel,
                                 const std::function<void(const std::string&)>& note,
                                 const std::function<void(const ConvertBenchResult&)>& done);

// Adds the result to a report's JSON, which has the machine.
void add_json(nlohmann::ordered_json& json, const ConvertBenchOptions& options,
              const ConvertBenchResult& result);
// Why the figures of such a JSON are doubtful, and what to do: wide spreads, a busy machine, too few
// pictures.
std::vector<std::string> warnings(const nlohmann::ordered_json& json);

}  // namespace shard::bench
