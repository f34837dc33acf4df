// A conversion whose shards are handed out by somebody else: Ray, Dask, Spark, a queue. Each process makes
// the same WorkPlan; whoever hands out the work calls convert_shard() for each number, in any order and
// anywhere, then finish() once.
//
//   WorkPlan plan(options);
//   for (i in any order, on any machine) plan.convert_shard(i);
//   plan.finish();
//
// convert_shard() has the same result however often it is called, also at the same time in several processes:
// the files that it writes depend on the plan and the number only. shardify with the same options does what
// is left of such a conversion.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shard/convert/convert.hpp"
#include "shard/convert/options.hpp"
#include "shard/error.hpp"

namespace shard::convert {

struct ShardResult {
  std::uint64_t shard = 0;
  std::uint64_t samples = 0;
  std::uint64_t rejects = 0;
  // Of the file; 0 if all images were rejects.
  std::uint64_t size_bytes = 0;
  // The shard was finished before.
  bool was_complete = false;
};

// Thread safe.
class WorkPlan {
 public:
  // Lists the inputs; writes nothing. Ranks, `overwrite`, `refresh` and `append` are refused.
  // Errors: those of run().
  explicit WorkPlan(const Options& options);
  WorkPlan(WorkPlan&&) noexcept;
  WorkPlan& operator=(WorkPlan&&) noexcept;
  ~WorkPlan();

  std::uint64_t shards() const noexcept;
  // Images that will be decoded.
  std::uint64_t inputs() const noexcept;
  // Over the options and the names, sizes and labels of the inputs. Equal in processes that see the same.
  std::string digest() const;
  // What was found, with the warnings that run() gives to Hooks::planned.
  Listing listing() const;

  // Errors: those of run(); invalid_argument if there is no such shard.
  ShardResult convert_shard(std::uint64_t shard, const Hooks& hooks = {}) const;
  // Writes dataset.json. It may be called again. Errors: those of run();
  // invalid_argument naming the first shard that is not finished.
  Summary finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::convert
