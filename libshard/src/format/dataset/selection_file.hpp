// Selections in files: FOLDER/NAME.selection (docs/format.md, "Selections").
#pragma once

#include <string>
#include <string_view>

#include "format/dataset/dataset_part.hpp"
#include "shard/selection.hpp"

namespace shard {

struct RecordedSelection {
  SampleBits bits;
  HashCuts cuts;
};

// The samples of the part. Errors: not_found, io; corrupt, naming file and rule, also if the part's shards
// are others than those that the selection was made of.
RecordedSelection read_selection(const DatasetPart& part, const std::string& name);
// A digest of the shards that a selection is made of: names, samples and heads.
std::uint64_t digest_of_shards(const DatasetInfo& info);
// Pure: the text of such a file, for the shards that `info` names.
RecordedSelection parse_selection(std::string_view text, const DatasetInfo& info);

}  // namespace shard
