// How a process gets OUT to itself: it makes the folder, locks it, and makes sure that the folder's plan is
// the requested one.
//
//   look at OUT -> complete: compare, repair what is missing
//               -> lock -> empty: publish conversion.json, unless another process just has -> read it back
//                       -> unfinished: compare
//
// If several conversions start at once, the one that publishes conversion.json first continues. The others
// compare their plan with it. If the plans differ, they end with an error that names the differences.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convert/plan/plan.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

struct Claim {
  FolderLock folder;
  RankLock rank;
  // The unfinished conversion in OUT was begun when inputs had other times: they may have been replaced.
  bool other_times = false;
  bool complete = false;  // OUT holds a complete data set with the requested options and inputs
  // Finished shards leave the folder, so that room for a few is enough. Set by the caller.
  bool shards_leave = false;
  // A disk without room for all shards is no error, but said in `lack_of_space`. Set by the caller.
  bool may_lack_space = false;
  std::string lack_of_space = {};
  // If the data set is complete: shards of this rank whose files are missing or have another size, by number.
  std::map<std::uint64_t, ShardSummary> missing;
};

// The caller may have locked `claim.folder` before. Errors: invalid_argument (OUT holds another conversion;
// the message names what differs), resource (another process works as the same rank; the message has its
// process id), io, corrupt.
void claim_folder(const Plan& plan, const Options& options, const PlanRecord& record, Claim& claim);

// Adds to `options`, as text, what a data set records beside its provenance: messages name what differs.
void record_values(Provenance& options, const DatasetSpec& spec);
// The plan from which a complete data set was made. What the data set does not record is taken from `asked`.
PlanRecord recorded_plan(const DatasetInfo& info, const PlanRecord& asked);

// Throws invalid_argument if the data set was put together from several conversions:
// then no single source is the one that it was made from.
void refuse_parts(const DatasetInfo& info, const std::filesystem::path& out,
                  const std::string& source_digest);

// The numbers of the shards that this rank converts.
std::vector<std::uint64_t> shards_of(const Plan& plan, const Options& options);
// Throws io if the disk has no room for these shards. Their size is known in advance with codec none only;
// with other codecs this does nothing.
void require_space(const Plan& plan, const Options& options, const std::vector<std::uint64_t>& todo,
                   bool shards_leave = false);

// Reads dataset.json of `out`, but not the shards. Errors: not_found, io, corrupt, unsupported.
DatasetInfo read_dataset_info(const std::filesystem::path& out);
bool dataset_is_there(const std::filesystem::path& out);

// Makes `folder` and its missing parents, and flushes each to the disk.
// Errors: invalid_argument (an address), io.
void make_folders(const std::filesystem::path& folder);

// Throws invalid_argument: `out` has something in it that no conversion made.
[[noreturn]] void refuse_foreign(const std::filesystem::path& out);
// Throws resource: process `pid` (0: unknown) works in `out`. `as`: empty, or " as rank 1 of 4".
[[noreturn]] void refuse_busy(const std::filesystem::path& out, std::int64_t pid, const std::string& as);

}  // namespace shard::convert
