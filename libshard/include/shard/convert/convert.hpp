// Converts images to a data set, in this process: scan -> plan -> workers -> shards -> publish. The program
// shardify and Python's convert() are thin layers over it; docs/examples/convert_images uses it directly.
//
// The plan is a pure function of the sorted list of inputs and the options: sample i lies in shard floor(i /
// per_shard). So the bytes of every shard are the same for any number of threads and processes, first run or
// resumed. Several processes may work on one OUT, by ranks or by claiming shards; whoever finds the
// last shard finished writes dataset.json. What is finished is never removed, whoever else is at work
// in OUT: a shard is replaced only by one with the right bytes, and a data set by another one that is
// complete (replace.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "shard/convert/jpeg_counts.hpp"
#include "shard/convert/listing.hpp"
#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/image/warnings.hpp"

namespace shard::convert {

// Read while a conversion runs, from any thread.
struct Counters {
  // Inputs of this process, including those of finished shards.
  std::atomic<std::uint64_t> planned{0};
  // Those of shards that an earlier run finished, or, with `claim`, another process.
  std::atomic<std::uint64_t> resumed{0};
  // By this run.
  std::atomic<std::uint64_t> stored{0};
  std::atomic<std::uint64_t> rejected{0};
  std::atomic<std::uint64_t> bytes_read{0};
  // Of samples, before the codec.
  std::atomic<std::uint64_t> bytes_stored{0};
};

// Where the time of the worker threads went, in seconds summed over threads.
struct StageSeconds {
  // Image files into memory.
  double read = 0;
  // Decode, resize, crop, normalise, cast.
  double preprocess = 0;
  // Hash, compress, write.
  double store = 0;
  // fsync and rename, on a separate thread.
  double publish = 0;
  // Workers wait for a shard to be published; those of a Writer also for rows.
  double wait = 0;
};

struct Summary {
  // The data set is finished. False: other processes still have shards to do.
  bool complete = false;
  // It was finished before, and nothing was done.
  bool was_complete = false;
  std::uint64_t inputs = 0;
  // Of the whole data set if it is complete, else of this process.
  std::uint64_t samples = 0;
  std::uint64_t rejects = 0;
  // Of the stored images; of the whole data set if this run completed it.
  image::WarningCounts warnings;
  // The same, with codec jpeg.
  JpegCounts jpeg;
  std::uint64_t shards = 0;
  // Of all shards.
  std::uint64_t size_bytes = 0;
  // Images that this run decoded.
  std::uint64_t converted = 0;
  // Shards that this run published.
  std::uint64_t converted_shards = 0;
  std::uint64_t bytes_read = 0;
  // Until the first image is decoded, and from then until the last shard is published.
  double scan_seconds = 0;
  double convert_seconds = 0;
  StageSeconds stages;
};

struct Hooks {
  Counters* counters = nullptr;
  // Once true, run() throws cancelled within a fraction of a second.
  const std::atomic<bool>* cancel = nullptr;
  // Called once, on the thread that calls run(), when inputs and labels are known and before anything is
  // written.
  std::function<void(const Listing&)> planned = nullptr;
  // Called for each shard that this run has finished, with its file name, on the thread that publishes them.
  // While it runs, one further shard is filled at most. What it throws ends the run.
  std::function<void(const std::string&)> published = nullptr;
};

// What to do about images of which 8 bits keep little (image::Warning::few_bits), with their number,
// as a sentence. Empty: there are none.
std::string few_bits_text(const image::WarningCounts& warnings);
// How many images are stored although pixels are missing or invented, as `on_warning` accept asks, with the
// kinds of their warnings. Returns "" if there are none.
std::string damaged_text(const image::WarningCounts& warnings);

// Of a complete data set.
Summary summary_of(const DatasetInfo& info);

// `out` may be s3://BUCKET/PREFIX: then shards are uploaded when they are finished, and dataset.json is last
// (docs/shardify.md, "Into an object store").
// Errors: invalid_argument, not_found, io, cancelled; resource (also if another process works in OUT as the
// same rank); corrupt (what an earlier run left cannot be read). After any of them nothing partial is
// visible, and the same call continues the conversion.
Summary run(const Options& options, const Hooks& hooks = {});

}  // namespace shard::convert
