// What shardify prints: the plan of a dry run, and the summary of a conversion.
#pragma once

#include "shard/convert/convert.hpp"
#include "shard/convert/estimate.hpp"

namespace shard::shardify {

// `found`: what the listing of IMAGES found.
void print_estimate(const convert::Options& options, const convert::Estimate& estimate,
                    const convert::Listing& found, bool json);
void print_summary(const convert::Options& options, const convert::Summary& summary,
                   const convert::Listing& found, double seconds, bool json);

}  // namespace shard::shardify
