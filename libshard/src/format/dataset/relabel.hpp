// A shard with other labels. Only the labels and the digest of the head change; all other bytes of the file
// stay, and so does its size. The result is what a writer gives for the same samples with these labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/dataset/class_list.hpp"
#include "shard/shard_reader.hpp"

namespace shard {

struct RelabelledHead {
  std::vector<std::byte> bytes;  // the file up to its images
  std::uint64_t digest = 0;
};
// Nothing if no label of the shard changes. Errors: corrupt (a label that `labels` does not have; the head
// does not have its digest), unsupported (labels are not I64 [N]), io.
std::optional<RelabelledHead> relabelled_head(const ShardReader& shard, const LabelMap& labels);

}  // namespace shard
