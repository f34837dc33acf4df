// Whether a shard is the one that dataset.json names. Opening a data set and verifying it ask this.
#pragma once

#include <optional>

#include "shard/dataset.hpp"

namespace shard {

// The first thing in which the shard differs from what dataset.json says of it (`expected`) and of all shards
// (`spec`), either of which may be null.
std::optional<SpecDifference> shard_difference(const ShardReader& shard, const ShardSummary* expected,
                                               const DatasetSpec* spec);

}  // namespace shard
