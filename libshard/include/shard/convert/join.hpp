// Joins data sets: the shards of all of them, in order, as one ordinary data set.
//
//   lock NEW -> each shard: hard link, copy, or copy with other labels
//            -> rejects.csv, inputs.csv -> dataset.json
//
// Every file appears whole or not at all, and dataset.json last. So NEW is no data set until it is
// complete, and a join that was stopped goes on with the same parts: what is there is compared with what
// belongs there, and kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::convert {

struct JoinOptions {
  // At least two folders of complete data sets, each once.
  std::vector<std::filesystem::path> parts;
  // New, empty, or of the same join.
  std::filesystem::path folder;
  // Copies instead of hard links. Where a hard link is not possible, a shard is copied in any case.
  bool copy = false;
  // Called before each shard.
  std::function<void(std::uint64_t done, std::uint64_t shards)> progress;
};

struct JoinSummary {
  DatasetInfo info;
  // It was complete before, and nothing was done.
  bool was_complete = false;
  // Shards that this run made.
  std::uint64_t linked = 0;
  std::uint64_t copied = 0;
  std::uint64_t relabelled = 0;
};

// Errors: invalid_argument (what differs between two parts, and what to do; `folder` holds something else),
// not_found, corrupt, io, resource (another process is at work in `folder`, or changes a part).
JoinSummary join(const JoinOptions& options);

// What both dataset.json state alike, and must, if their shards shall be one data set. Throws
// invalid_argument naming both paths, what differs, and what to do.
void require_joinable(const DatasetInfo& first, const std::filesystem::path& first_path,
                      const DatasetInfo& other, const std::filesystem::path& other_path);

// Adds the counts and the parts of `part` to `whole`, but neither shards nor classes. The source digest
// becomes that over all parts: XXH3-64 of their digests in hexadecimal, each followed by a space. So it does
// not matter in which steps parts are put together.
void add_part(DatasetInfo& whole, const DatasetInfo& part);

// The number of the shard that follows those of `info`.
std::uint64_t next_shard(const DatasetInfo& info);

}  // namespace shard::convert
