// Images that become a data set while they are used: each sample is stored when it is first made, and shards
// are finished in the background.
//
//   shard::convert::CachedSource source = shard::convert::open_source(options, {"/nvme/cache"});
//   shard::Loader loader(source.data, device, loader_options);
//
//   first use of a sample -> decode -> batch
//                                  `-> log of this process in the folder
//   all samples of a shard are there -> background: shard, receipt -> the last one: dataset.json
//
// The folder is that of a conversion (run()) with the same options that has not ended: any number of
// processes may use it at once, of one node or several, and also `shardify --claim`. A finished folder is
// byte for byte what run() writes. What a killed process has stored is used by the next one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "shard/convert/convert.hpp"
#include "shard/convert/options.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::convert {

struct CacheOptions {
  // Made if it does not exist. It must be empty, or that of a conversion with the same options, finished or
  // not.
  std::filesystem::path folder;
  // Threads that finish shards, 1 to 1024. 0: an eighth of the CPUs that this process may use, at least 1.
  unsigned jobs = 0;
  // Images that keep their size and are all named as JPEG files (.jpg, .jpeg, .jpe, .jfif) are stored with
  // codec jpeg and `no_sample_digest`, whatever the options say of the codec.
  bool choose_codec = false;
};

// Of all processes that use the folder, unless it says otherwise.
struct CacheProgress {
  std::uint64_t inputs = 0;
  // Inputs that are stored or known as rejects, in shards or in logs.
  std::uint64_t stored = 0;
  std::uint64_t shards = 0;
  std::uint64_t finished_shards = 0;
  // Inputs that this process has read and decoded for batches, and to finish shards.
  std::uint64_t decoded = 0;
  std::uint64_t decoded_for_shards = 0;
  // Samples that this process has taken from the folder.
  std::uint64_t found = 0;
  // dataset.json is written.
  bool complete = false;
  // Until all inputs are stored, by the rate of the last half minute. Negative: not known.
  double seconds_left = -1;
  // Why this process stores nothing any more (a full disk), or does not finish a shard (an image that cannot
  // be read now). Empty: it does.
  std::string problem;
};

// What happens in the folder beside the data set. Thread safe; in a child after fork() it is that of the
// child.
class ImageCache {
 public:
  virtual ~ImageCache() = default;
  virtual CacheProgress progress() const = 0;
  // Ends the background threads, within a fraction of a second beside the writes that the system has begun.
  // Samples can still be read and stored. Also when the last copy of the data set is gone.
  virtual void stop() noexcept = 0;
};

struct CachedSource {
  Dataset data;
  // Null: the folder was complete, and all inputs are stored: `data` is the data set in it.
  std::shared_ptr<ImageCache> cache;
};

// As open_source() without a cache. Samples are stored with the codec of the options. With codec jpeg and
// images that keep their size a device decodes frames only with `no_sample_digest`, since else each JPEG file
// has to be decoded for its digest.
//
// If the disk is full, samples are made as without a cache. Errors: also those of run() before its first
// image: invalid_argument (the folder holds another data set, and what differs), io, resource.
CachedSource open_source(const Options& options, const CacheOptions& cache, const Hooks& hooks = {});

}  // namespace shard::convert
