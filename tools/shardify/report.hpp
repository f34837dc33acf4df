// What shardify prints: the plan of a dry run, and the summary of a conversion.
#pragma once

#include <string>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/estimate.hpp"

namespace shard::shardify {

// `found`: what the listing of IMAGES found.
void print_estimate(const convert::Options& options, const convert::Estimate& estimate,
                    const convert::Listing& found, bool json);
void print_summary(const convert::Options& options, const convert::Summary& summary,
                   const convert::Listing& found, double seconds, bool json);
// What it says of images whose samples are not all that the files have. Sentences for people.
std::vector<std::string> warnings_of(const convert::Summary& summary);

}  // namespace shard::shardify
