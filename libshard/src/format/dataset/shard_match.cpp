#include "format/dataset/shard_match.hpp"

#include <fmt/format.h>

#include "base/digest/checksum.hpp"
#include "format/shard/shard_profile.hpp"

namespace shard {
namespace {

std::string text_of(const std::vector<LargestSample>& largest) {
  std::string text;
  for (const LargestSample& of : largest) text += (text.empty() ? "" : "; ") + largest_to_text(of);
  return text.empty() ? "none" : text;
}

}  // namespace

// To compare the head digests would be enough; the other comparisons find out what is different.
std::optional<SpecDifference> shard_difference(const ShardReader& shard, const ShardSummary* expected,
                                               const DatasetSpec* spec) {
  if (expected != nullptr && shard.size() != expected->samples)
    return SpecDifference{"sample count", fmt::to_string(shard.size()), fmt::to_string(expected->samples)};
  if (expected != nullptr && shard.file_size_bytes() != expected->size_bytes)
    return SpecDifference{"size", fmt::to_string(shard.file_size_bytes()),
                          fmt::to_string(expected->size_bytes)};
  if (spec != nullptr)
    if (auto found = difference(shard.header(), *spec)) return found;
  if (expected != nullptr && shard.header().largest_of_free() != expected->largest)
    return SpecDifference{"largest samples", text_of(shard.header().largest_of_free()),
                          text_of(expected->largest)};
  if (expected != nullptr && shard.header().head_digest != expected->head_digest)
    return SpecDifference{"head digest", to_hex(shard.header().head_digest), to_hex(expected->head_digest)};
  return std::nullopt;
}

}  // namespace shard
