// The steps of a conversion that more than one kind of run takes (convert_to_folder.cpp, work_plan.cpp,
// writer_close.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "convert/engine/row_source.hpp"
#include "convert/plan/plan.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/journal.hpp"
#include "shard/convert/convert.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

PlanRecord record_of(const Plan& plan, const DatasetSpec& spec);
// Without what the inputs say: source_digest and inputs.
PlanRecord record_of(const DatasetSpec& spec, std::uint64_t per_shard);

// A shard of the plan, with all that is known of its size.
ShardToFill to_fill(const Plan& plan, const DatasetSpec& spec, std::uint64_t shard);

// Converts and publishes these shards, in order. One that another process finishes before its turn is
// skipped; with options.claim other processes have the same ones, and each is converted by the one that locks
// it. `missing`: the shards that a complete data set has lost, to which what is converted must be equal.
// Empty if the data set is not complete. Adds to `summary`.
void convert_shards(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                    std::vector<std::uint64_t> todo, const std::map<std::uint64_t, ShardSummary>& missing,
                    Summary& summary);

// What a data set is when its shards are finished.
struct Ending {
  std::uint64_t shards = 0;
  // source_digest empty: it is made of inputs.csv and the classes.
  DatasetInfo info;
  // Those that belong to no shard.
  std::vector<Reject> rejects;
};
// Publishes rejects.csv and inputs.csv, then dataset.json, if every shard is finished. False: other processes
// still have shards to convert, or one of them has just published these files.
bool publish_dataset(const std::filesystem::path& out, const PlanRecord& record, Ending ending,
                     Summary& summary);
bool publish_dataset(const Plan& plan, const Options& options, const PlanRecord& record, Summary& summary);

// The totals of the data set, and the times and counts of this run.
Summary finished(const DatasetInfo& info, const Summary& run);

// An input that was stored: its position in the plan, and the digest of what it was made of.
struct StoredInput {
  std::uint64_t input = 0;
  std::uint64_t digest = 0;
};
// Reads these inputs. Throws invalid_argument, naming the first, if one of them is another one now. For a
// folder that was begun when the inputs had other times (Claim::other_times): a copy of the same files may go
// on, and other images may not.
void require_same_inputs(const Plan& plan, const Options& options, const std::vector<StoredInput>& stored,
                         const Hooks& hooks);
// The inputs of the finished shards in options.out.
std::vector<StoredInput> stored_inputs(const Plan& plan, const Options& options, const PlanRecord& record);

// Converts what is missing in options.out and completes it. The plan and the receipts of a staged conversion
// stay, because a later run recognises it by them. Errors: those of run().
Summary convert_into(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                     Claim& claim);

}  // namespace shard::convert
