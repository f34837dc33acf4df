// How a new data set takes the place of the one in OUT, which stays complete and readable until then.
//
//   convert into OUT/.shardify-next -> complete
//     -> rename it to .NAME.shardify-old beside OUT -> exchange the two names (renameat2) -> remove the old
//     one
//
// The exchange is one step for readers: a path leads to the old set or to the new one, and files that were
// open stay what they were. Files in OUT that no conversion wrote are moved to the new folder.
//
// Where the two names cannot be exchanged (OUT is a mount point or this process's working folder, the folder
// above may not be written, the file system has no exchange), the files are moved up one by one, dataset.json
// last. For that time OUT is an unfinished conversion; a run that is stopped then is finished by the next
// one.
#pragma once

#include <filesystem>
#include <functional>

#include "convert/claim.hpp"
#include "convert/journal.hpp"
#include "convert/plan.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

inline constexpr const char* kStagingFolder = ".shardify-next";

// Converts into a folder: what run() does for an OUT that is new.
using RunIn = std::function<Summary(const Options&, const PlanRecord&, Claim&)>;

// --overwrite and --refresh, for an OUT that holds a data set or an unfinished conversion. A run that was
// stopped goes on where it was if it is started with the same options and inputs. Errors: those of run().
Summary replace_dataset(const Plan& plan, const Options& options, const PlanRecord& record,
                        const Hooks& hooks, const RunIn& run_in);

// Brings to an end what a stopped replacement left. The caller has the lock of the folder alone. True: the
// content of `out` is another one now. Errors: io.
bool finish_replacement(const std::filesystem::path& out);

// Whether a stopped run left files that the next one removes. Errors: io.
bool has_leftovers(const std::filesystem::path& out);

}  // namespace shard::convert
