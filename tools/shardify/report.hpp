// What shardify prints: the plan of a dry run, and what came of a conversion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/estimate.hpp"

namespace shard::shardify {

// What was found in IMAGES, as far as it is printed.
struct Found {
  std::vector<std::string> classes;
  std::vector<std::string> empty_folders;
  std::vector<convert::Skip> skipped;
  std::uint64_t unlisted = 0;
};
Found found_in(const convert::Plan& plan);

void print_estimate(const convert::Options& options, const convert::Estimate& estimate, const Found& found,
                    bool json);
void print_summary(const convert::Options& options, const convert::Summary& summary, const Found& found,
                   double seconds, bool json);

}  // namespace shard::shardify
