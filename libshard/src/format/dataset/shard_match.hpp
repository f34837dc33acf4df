// Whether a shard is the one that dataset.json names, for opening and for verifying a data set.
#pragma once

#include <optional>

#include "shard/dataset.hpp"

namespace shard {

// The first difference between the shard and what dataset.json states about it (`expected`) and about all
// shards (`spec`). Either of them may be null.
std::optional<SpecDifference> shard_difference(const ShardReader& shard, const ShardSummary* expected,
                                               const DatasetSpec* spec);

}  // namespace shard
