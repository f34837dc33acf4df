// Converts images to a data set, in this process: scan -> plan -> workers -> shards -> publish. The program
// shardify and Python's convert() are thin layers over it; docs/examples/convert_images uses it directly.
//
// The plan is a pure function of the sorted list of inputs and the options: sample i lies in shard floor(i /
// per_shard). So the bytes of every shard are the same for any number of threads and processes, first run or
// resumed. Several processes with different ranks may work on one OUT; whoever finds the last shard finished
// writes dataset.json. What is finished is never removed, whoever else is at work in OUT: a shard is replaced
// only by one with the right bytes, and a data set by another one that is complete (replace.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/image/warnings.hpp"

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

struct Hooks {
  Counters* counters = nullptr;
  // Once true, run() throws cancelled within a fraction of a second.
  const std::atomic<bool>* cancel = nullptr;
  // Called once, on the thread that calls run(), when inputs and labels are known and before anything is
  // written.
  std::function<void(const Listing&)> planned = nullptr;
};

// Of a complete data set, whoever made it.
Summary summary_of(const DatasetInfo& info);

// Errors: invalid_argument, not_found, io, resource (also: another process works in OUT as the same rank),
// cancelled; corrupt where what an earlier run left cannot
// be read. After any of them the folder is as if killed: nothing partial is visible, the same call goes on.
Summary run(const Options& options, const Hooks& hooks = {});

}  // namespace shard::convert
