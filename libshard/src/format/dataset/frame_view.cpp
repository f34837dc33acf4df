#include "format/dataset/frame_view.hpp"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "format/dataset/dataset_part.hpp"
#include "format/dataset/dataset_view.hpp"

namespace shard {

Dataset FrameView::of(const Dataset& data) {
  const Dataset::Impl& from = *data.impl_;
  std::map<const DatasetPart*, std::shared_ptr<const DatasetPart>> parts;
  std::vector<ViewShard> shards = from.shards;
  DatasetInfo info = from.info;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    ViewShard& shard = shards[i];
    auto& part = parts[shard.part.get()];
    if (!part) part = shard.part->with_frames();
    if (!part) return data;
    shard.part = part;
    const ShardSummary& of = part->info().shards[shard.index];
    info.shards[i].size_bytes = of.size_bytes;
    info.shards[i].largest = of.largest;
  }
  info.codec = parts.begin()->second->info().codec;
  info.unindexed_files = true;
  auto impl = std::make_shared<Dataset::Impl>(std::move(shards), std::move(info), from.path);
  impl->add_cuts(from.cuts);
  return Dataset(std::move(impl));
}

}  // namespace shard
