// CachedSamples: the folder of a conversion that samples are stored in when they are first made
// (shard/convert/image_cache.hpp). SourceImages asks it for each sample, and gives it what it has made.
//
//   find(input) -> a finished shard -> a log -> nothing: the caller makes the sample -> store()
//
// One thread of each process looks around a few times a second: what others have stored, which shards are
// finished. It finishes those of which all samples are stored. Where a run finds nearly all that it asks for,
// as in its second epoch, it also finishes shards of which a few samples are missing, which nobody may ever
// ask for: it makes those itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/system/turns.hpp"
#include "convert/engine/cached_sample.hpp"
#include "convert/plan/plan.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/image_cache.hpp"
#include "shard/shard_reader.hpp"

namespace shard::convert {

// Thread safe, also in a child after fork(), which gets threads and files of its own.
class CachedSamples final : public ImageCache {
 public:
  // `options`: `out` is the folder, and `claim` is set. Claims the folder: errors of claim_folder().
  CachedSamples(std::shared_ptr<const Plan> plan, const Options& options, const PlanRecord& record);
  CachedSamples(const CachedSamples&) = delete;
  CachedSamples& operator=(const CachedSamples&) = delete;
  ~CachedSamples() override;

  // The folder holds a complete data set.
  bool complete() const;
  // What a sample that is stored is given to, once: a row of a finished shard, or what a log has. What they
  // refer to is valid during the call.
  struct Receiver {
    std::function<void(const ShardReader& shard, std::uint64_t row)> row;
    std::function<void(const CachedSample& sample)> sample;
  };
  // False: it is not stored, and `receiver` was not called, or is a reject of a finished shard. Errors: those
  // of reading shards, and of `receiver`.
  bool find(std::uint64_t input, const Receiver& receiver) const;
  // Does nothing where storing has ended (CacheProgress::problem).
  void store(std::uint64_t input, const CachedSample& sample) const;

  // Of the threads of this process, for the inputs that they make.
  Turns& turns() const;

  CacheProgress progress() const override;
  void stop() noexcept override;

 private:
  class Process;

  Process& process() const;

  const std::shared_ptr<const Plan> plan_;
  const Options options_;
  const PlanRecord record_;
  mutable std::atomic<Process*> process_{nullptr};
};

}  // namespace shard::convert
