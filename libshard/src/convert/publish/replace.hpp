// Replaces the data set in OUT by a new one. The old one stays complete and readable until the new one is.
//
//   convert into OUT/.shardify-next -> complete
//     -> rename it to .NAME.shardify-old beside OUT
//     -> exchange the two names (renameat2)
//     -> remove the old one
//
// The exchange is atomic for readers: a path leads either to the old data set or to the new one, and open
// files do not change. Files in OUT that no conversion wrote are moved to the new folder.
//
// Sometimes the two names cannot be exchanged: OUT is a mount point or this process's working folder, the
// folder above may not be written, or the file system has no exchange. Then the files are moved up one by
// one, dataset.json last. During that time OUT is an unfinished conversion. If the run is stopped then, the
// next one finishes it.
#pragma once

#include <filesystem>
#include <functional>

#include "convert/publish/journal.hpp"
#include "convert/publish/staging.hpp"

namespace shard::convert {

// Makes the staging folder. What an earlier run left in it stays if it has the same plan,
// and is removed if not. Errors: io.
void prepare_staging(const std::filesystem::path& staging, const PlanRecord& record);

// Before a new data set is put into the staging folder of `out`: finishes what other runs have begun there.
// The caller holds the exclusive lock of the folder. Errors: io, corrupt.
void prepare_replacement(const std::filesystem::path& out);
// Makes the staging folder. What is in it stays if its plan is one of a staged data set that `keep`
// accepts. Errors: io.
void clear_staging(const std::filesystem::path& staging, const std::function<bool(const PlanRecord&)>& keep);
// Errors: io.
void remove_staging(const std::filesystem::path& staging);
// Puts the finished data set in the staging folder in the place of `out`.
// Its conversion.json and receipts stay: see remove_journal(). Errors: io.
void put_in_place(const std::filesystem::path& out);

// Finishes a replacement that was stopped. The caller holds the exclusive lock of the folder. Returns true if
// `out` now has other content. Errors: io.
bool finish_replacement(const std::filesystem::path& out);

// Whether a stopped run left files that the next run must remove. Errors: io.
bool has_leftovers(const std::filesystem::path& out);

}  // namespace shard::convert
