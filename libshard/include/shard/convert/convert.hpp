// The conversion engine: scan -> plan -> workers -> shards -> publish. `shardify` is a thin program over it.
//
// The plan is a pure function of the sorted list of inputs and the options: sample i lies in shard floor(i /
// per_shard). So the bytes of every shard are the same for any number of threads and processes, first run or
// resumed. Several processes with different ranks may work on one OUT; whoever finds the last shard finished
// writes dataset.json. What is finished is never removed, whoever else is at work in OUT: a shard is replaced
// only by one with the right bytes, and a data set by another one that is complete (replace.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shard/convert/options.hpp"
#include "shard/convert/scan.hpp"

namespace shard::convert {

// Read while a conversion runs, from any thread.
struct Counters {
  std::atomic<std::uint64_t> planned{0};   // inputs of this process, those of finished shards included
  std::atomic<std::uint64_t> resumed{0};   // of them, in shards that an earlier run finished
  std::atomic<std::uint64_t> stored{0};    // by this run
  std::atomic<std::uint64_t> rejected{0};  // by this run
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> bytes_stored{0};  // of samples, before the codec
};

// Where the time of the worker threads went, in seconds summed over threads.
struct StageSeconds {
  double read = 0;        // image files into memory
  double preprocess = 0;  // decode, resize, crop, normalise, cast
  double store = 0;       // hash, compress, write
  double publish = 0;     // fsync, rename (a thread of its own)
  double wait = 0;        // workers waiting for a shard to be published
};

struct Summary {
  bool complete = false;      // dataset.json is there; false: other processes still have shards to do
  bool was_complete = false;  // it was there before: nothing was done
  std::uint64_t inputs = 0;
  std::uint64_t samples = 0;      // whole data set when complete, else this process
  std::uint64_t rejects = 0;      // likewise
  image::WarningCounts warnings;  // of the images stored; of the whole data set when this run completed it
  std::uint64_t shards = 0;
  std::uint64_t size_bytes = 0;  // of all shards
  std::uint64_t converted = 0;   // images decoded by this run
  std::uint64_t bytes_read = 0;
  double scan_seconds = 0;     // scan to the first decode
  double convert_seconds = 0;  // first decode to the last publish
  StageSeconds stages;
};

struct Plan;

struct Hooks {
  Counters* counters = nullptr;
  // Once true, run() throws cancelled within a fraction of a second.
  const std::atomic<bool>* cancel = nullptr;
  // Called once, on the thread that runs, when inputs and labels are known and before anything is written.
  std::function<void(const Plan&)> planned = nullptr;
};

// What a list of inputs and labels is to become.
struct Plan {
  InputList list;
  LabelTable labels;
  std::uint64_t per_shard = 0;
  std::uint64_t listed = 0;  // inputs and those rejected while listing
  std::vector<std::uint64_t>
      sizes;                  // in bytes, of each of list.inputs; kUnknownSize where it cannot be known
  std::string source_digest;  // over keys, sizes and labels
  std::string names_digest;   // over keys and labels: what earlier versions recorded as source_digest
  static constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
  std::optional<std::uint64_t> size_of(std::uint64_t input) const {
    return sizes[input] == kUnknownSize ? std::nullopt : std::optional(sizes[input]);
  }
  // An input has another size than when the plan was made: throws invalid_argument.
  void require_size(std::uint64_t input, std::uint64_t found) const;
  std::uint64_t shards() const noexcept { return (list.inputs.size() + per_shard - 1) / per_shard; }
  std::uint64_t shard_inputs(std::uint64_t shard) const noexcept;  // planned samples of a shard
};
// Looks at every input once (size), on options.threads() threads.
Plan make_plan(const Options& options);
// Of a complete data set, whoever made it.
Summary summary_of(const DatasetInfo& info);

// Errors: invalid_argument, not_found, io, resource (also: another process works in OUT as the same rank),
// cancelled; corrupt where what an earlier run left cannot
// be read. After any of them the folder is as if killed: nothing partial is visible, the same call goes on.
Summary run(const Options& options, const Hooks& hooks = {});

}  // namespace shard::convert
