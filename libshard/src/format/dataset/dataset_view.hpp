// What a Dataset is made of: shards of one or several opened folders,
// and which of their samples belong to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "format/dataset/class_list.hpp"
#include "format/dataset/dataset_part.hpp"
#include "format/dataset/sample_set.hpp"
#include "shard/dataset.hpp"

namespace shard {

struct ViewShard {
  std::shared_ptr<const DatasetPart> part;
  std::uint32_t index = 0;                   // in the part
  std::shared_ptr<const SampleSet> members;  // null: all of its samples
  std::shared_ptr<const LabelMap> labels;    // null: as they are stored
};

struct Dataset::Impl {
  // info.shards describes `shards`.
  Impl(std::vector<ViewShard> of, DatasetInfo about, std::filesystem::path named);
  std::uint64_t digest() const;
  void add_cuts(const HashCuts& others);

  std::vector<ViewShard> shards;
  DatasetInfo info;
  std::filesystem::path path;
  HashCuts cuts;
  std::vector<std::uint64_t> ends;      // samples up to and including each shard
  std::uint64_t samples_per_shard = 1;  // of the first shard: where to look first
};

}  // namespace shard
