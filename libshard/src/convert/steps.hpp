// The steps of a conversion that more than one kind of run takes (convert.cpp, work_plan.cpp, writer.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "convert/journal.hpp"
#include "convert/plan.hpp"
#include "shard/convert/convert.hpp"
#include "shard/dataset.hpp"

namespace shard::convert {

PlanRecord record_of(const Plan& plan, const DatasetSpec& spec);

// Converts and publishes these shards; `missing` as for Scheduler. Adds to `summary`.
void convert_shards(const Plan& plan, const Options& options, const PlanRecord& record, const Hooks& hooks,
                    std::vector<std::uint64_t> todo, const std::map<std::uint64_t, ShardSummary>& missing,
                    Summary& summary);

// Publishes rejects.csv and inputs.csv, then dataset.json, if every shard is finished. False: other processes
// still have shards to convert, or one of them has just published these files.
bool publish_dataset(const Plan& plan, const Options& options, const PlanRecord& record, Summary& summary);

// The totals of the data set, and the times and counts of this run.
Summary finished(const DatasetInfo& info, const Summary& run);

}  // namespace shard::convert
