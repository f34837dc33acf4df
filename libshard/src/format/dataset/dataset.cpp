#include "shard/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/dataset_part.hpp"
#include "format/dataset/dataset_view.hpp"
#include "format/dataset/selection_file.hpp"
#include "shard/error.hpp"

namespace shard {
namespace fs = std::filesystem;

Dataset::Impl::Impl(std::vector<ViewShard> of, DatasetInfo about, fs::path named)
    : shards(std::move(of)), info(std::move(about)), path(std::move(named)) {
  std::uint64_t end = 0;
  for (const ShardSummary& shard : info.shards) ends.push_back(end += shard.samples);
  if (end > 0) samples_per_shard = std::max<std::uint64_t>(1, ends.front());
}

// 0 where the data set is what lies in one folder or file.
std::uint64_t Dataset::Impl::digest() const {
  const DatasetPart* const first = shards.empty() ? nullptr : shards.front().part.get();
  bool whole = first != nullptr && shards.size() == first->info().shards.size();
  for (const ViewShard& shard : shards) whole = whole && shard.part.get() == first && !shard.members;
  if (whole || shards.empty()) return 0;
  Xxh3Stream stream;
  const auto add = [&](std::uint64_t value) { stream.update(std::as_bytes(std::span(&value, 1))); };
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const ViewShard& shard = shards[i];
    add(info.shards[i].head_digest);
    add(info.shards[i].samples);
    if (!shard.members) continue;
    for (auto run = shard.members->run_from(0); run.begin < run.end; run = shard.members->run_from(run.end)) {
      add(run.begin);
      add(run.end);
    }
  }
  return stream.digest();
}

void Dataset::Impl::add_cuts(const HashCuts& others) {
  for (const auto& [seed, levels] : others) cuts[seed] = std::max(cuts[seed], levels);
}

Dataset DatasetPart::whole(std::shared_ptr<const DatasetPart> part) {
  DatasetInfo info = part->info();
  std::vector<ViewShard> shards;
  for (std::uint32_t i = 0; i < info.shards.size(); ++i) shards.push_back({part, i, nullptr, nullptr});
  return Dataset(std::make_shared<Dataset::Impl>(std::move(shards), std::move(info), part->path()));
}

Dataset Dataset::open(const fs::path& path) {
  const DatasetPath of = parse_dataset_path(path);
  std::shared_ptr<const DatasetPart> part = DatasetPart::open(of.folder);
  const Dataset whole = DatasetPart::whole(part);
  whole.impl_->path = path;
  if (of.selection.empty()) return whole;
  RecordedSelection recorded = read_selection(*part, of.selection);
  const Dataset some = whole.select(Selection::bits(std::move(recorded.bits)));
  some.impl_->add_cuts(recorded.cuts);
  return some;
}

Dataset::Dataset(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

const fs::path& Dataset::path() const noexcept { return impl_->path; }
bool Dataset::is_lone_shard() const noexcept {
  return impl_->shards.size() == 1 && impl_->shards.front().part->is_lone_shard();
}
const fs::path& Dataset::folder() const noexcept { return impl_->shards.front().part->folder(); }
const DatasetInfo& Dataset::info() const noexcept { return impl_->info; }
std::uint64_t Dataset::size() const noexcept { return impl_->ends.back(); }
std::uint64_t Dataset::selection_digest() const { return impl_->digest(); }

Dataset::Location Dataset::locate(std::uint64_t index) const {
  if (index >= size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} does not exist: {} has {}, numbered from 0", index,
                            quoted(impl_->path), size()));
  }
  const auto& ends = impl_->ends;
  // Shards mostly hold the same number of samples: then the guess is right.
  auto shard = static_cast<std::size_t>(index / impl_->samples_per_shard);
  if (shard >= ends.size() || index >= ends[shard] || (shard > 0 && index < ends[shard - 1]))
    shard = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), index) - ends.begin());
  const std::uint64_t rank = index - (shard == 0 ? 0 : ends[shard - 1]);
  const SampleSet* const members = impl_->shards[shard].members.get();
  return {static_cast<std::uint32_t>(shard), members != nullptr ? (*members)[rank] : rank};
}

void Dataset::read(std::uint64_t index, std::span<std::byte> out) const {
  const Location at = locate(index);
  shard(at.shard).images().read(at.sample, out);
}

void Dataset::read_field(std::size_t field, std::uint64_t index, std::span<std::byte> out) const {
  const Location at = locate(index);
  shard(at.shard).images(field).read(at.sample, out);
}

std::int64_t Dataset::label(std::uint64_t index) const {
  const Location at = locate(index);
  return label_of(at.shard, shard(at.shard).label(at.sample));
}

std::string Dataset::key(std::uint64_t index) const {
  const Location at = locate(index);
  return shard(at.shard).key(at.sample);
}

void Dataset::read_column(std::uint64_t index, std::string_view name, std::vector<std::byte>& out) const {
  const Location at = locate(index);
  const ShardReader& reader = shard(at.shard);
  reader.read_column(reader.column(name), at.sample, out);
}

std::string Dataset::text(std::uint64_t index, std::string_view name) const {
  const Location at = locate(index);
  const ShardReader& reader = shard(at.shard);
  return reader.text(reader.column(name), at.sample);
}

std::int64_t Dataset::label_of(std::uint32_t shard, std::int64_t stored) const {
  const LabelMap* const labels = impl_->shards[shard].labels.get();
  if (labels == nullptr) return stored;
  if (stored >= 0 && static_cast<std::uint64_t>(stored) < labels->size())
    return (*labels)[static_cast<std::size_t>(stored)];
  throw Error(ErrorCode::corrupt, fmt::format("shard {} has the label {}; its data set has {} classes",
                                              quoted(this->shard(shard).path()), stored, labels->size()));
}

bool Dataset::maps_labels(std::uint32_t shard) const noexcept {
  return impl_->shards[shard].labels != nullptr;
}

const ShardReader& Dataset::shard(std::uint32_t index) const {
  const Impl& self = *impl_;
  if (index >= self.shards.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("shard {} does not exist: {} has {}, numbered from 0", index, quoted(self.path),
                            self.shards.size()));
  }
  return self.shards[index].part->shard(self.shards[index].index);
}

bool Dataset::is_remote() const noexcept {
  return std::any_of(impl_->shards.begin(), impl_->shards.end(),
                     [](const ViewShard& shard) { return shard.part->is_remote(); });
}

bool Dataset::is_unconverted() const noexcept {
  return std::any_of(impl_->shards.begin(), impl_->shards.end(),
                     [](const ViewShard& shard) { return shard.part->is_unconverted(); });
}

std::vector<const HoldingFile*> Dataset::holding_files() const {
  std::vector<const HoldingFile*> all;
  std::set<const DatasetPart*> parts;
  for (const ViewShard& shard : impl_->shards) {
    if (!parts.insert(shard.part.get()).second) continue;
    const std::vector<const HoldingFile*> files = shard.part->holding_files();
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

const ShardReader* Dataset::opened(std::uint32_t index) const noexcept {
  return impl_->shards[index].part->opened(impl_->shards[index].index);
}

Dataset::Source Dataset::source(std::uint32_t index) const {
  const ViewShard& shard = impl_->shards[index];
  const DatasetInfo& info = shard.part->info();
  return {shard.part->path_of(info.shards[shard.index]), info, info.shards[shard.index]};
}

}  // namespace shard
