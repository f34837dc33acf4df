// What shardify prints: the plan of a dry run, and what came of a conversion.
#pragma once

#include "convert/convert.hpp"
#include "convert/estimate.hpp"

namespace shard::shardify {

void print_estimate(const convert::Options& options, const convert::Estimate& estimate, bool json);
void print_summary(const convert::Options& options, const convert::Summary& summary, double seconds,
                   bool json);

}  // namespace shard::shardify
