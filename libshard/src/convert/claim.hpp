// How a process comes to work in OUT: the folder is made, locked, and holds the plan that is asked for.
//
//   look at OUT -> complete: compare, repair what is missing
//               -> lock -> empty: publish conversion.json, unless another process just has -> read it back
//                       -> unfinished: compare
//
// Of several conversions that are started at once, the one whose conversion.json is there first goes on; the
// others compare, and are refused, naming what differs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "convert/folder_lock.hpp"
#include "convert/journal.hpp"
#include "convert/plan.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

struct Claim {
  FolderLock folder;
  RankLock rank;
  bool complete = false;  // the data set is there and holds what is asked for
  // Of a complete data set: shards of this rank whose files are missing or have another size, by number.
  std::map<std::uint64_t, ShardSummary> missing;
};

// `claim.folder` may be held already. Errors: invalid_argument (another conversion is there, naming what
// differs), resource (another process works as the same rank, naming its process id), io, corrupt.
void claim_folder(const Plan& plan, const Options& options, const PlanRecord& record, Claim& claim);

// What a data set records beside its pipeline, as text, so that a difference can be named.
void record_values(Provenance& options, const Normalization& n, const ColumnSpec& labels);
// The record of a complete data set, as far as it can be compared with the one asked for.
PlanRecord recorded_plan(const DatasetInfo& info, const PlanRecord& asked);

// The shards that are this rank's to convert.
std::vector<std::uint64_t> shards_of(const Plan& plan, const Options& options);
// Throws io when the disk has no room for these shards, where their size is known before (codec none).
void require_space(const Plan& plan, const Options& options, const std::vector<std::uint64_t>& todo);

// dataset.json of `out`, without a look at the shards. Errors: not_found, io, corrupt, unsupported.
DatasetInfo read_dataset_info(const std::filesystem::path& out);
bool dataset_is_there(const std::filesystem::path& out);

// Makes `folder` and those above it that are not there; each is on the disk when this returns. Errors: io.
void make_folders(const std::filesystem::path& folder);

// A message for `out` that another process holds: throws resource.
[[noreturn]] void refuse_busy(const std::filesystem::path& out, std::int64_t pid, const std::string& as);

}  // namespace shard::convert
