#include "shardctl/duplicates/set_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/digest/checksum.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shardctl/dataset/labels.hpp"
#include "shardctl/dataset/sizes.hpp"

namespace shard::ctl {
namespace {

// Whether the samples of one are among those of the other. Two parts of a data set have none in common,
// or are meant to be compared.
bool is_same_set(const std::string& a, const std::string& b) {
  const DatasetPath first = parse_dataset_path(a);
  const DatasetPath second = parse_dataset_path(b);
  const bool nested =
      first.selection == second.selection || first.selection.empty() || second.selection.empty();
  std::error_code unknown;
  return nested && std::filesystem::equivalent(first.folder, second.folder, unknown);
}

void refuse_same_set_twice(const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!is_same_set(paths[i], paths[j])) continue;
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} and {} are the same data set, or one is a part of the other; name one of them",
                      quoted(paths[j]), quoted(paths[i])));
    }
  }
}

std::string samples_text(const DatasetInfo& info) {
  std::string text = spec_text(info.spec);
  if (info.spec.dtype != DType::u8) {
    text += fmt::format(", mean {}, std {}", fmt::join(info.normalization.mean, ","),
                        fmt::join(info.normalization.std, ","));
  }
  return text;
}

}  // namespace

SetList::SetList(const std::vector<std::string>& paths, unsigned threads) : paths_(paths), begins_{0} {
  for (const std::string& path : paths) {
    sources_.push_back(Source::open(path));
    begins_.push_back(begins_.back() + sources_.back().size());
    free_ = free_ || sources_.back().info().spec.is_free();
  }
  refuse_same_set_twice(paths);
  for (const Source& source : sources_)
    parallel_for(threads, source.shards(),
                 [&](unsigned, std::uint64_t shard) { source.shard(static_cast<std::uint32_t>(shard)); });
}

SetList::Place SetList::place(std::uint64_t sample) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), sample);
  const auto set = static_cast<std::size_t>(after - begins_.begin()) - 1;
  return {set, sample - begins_[set]};
}

std::uint64_t SetList::digest(std::uint64_t sample) const {
  const Place at = place(sample);
  const Source::Sample found = sources_[at.set].locate(at.index);
  const StoredImages& images = found.reader.images();
  std::uint64_t checksum = images.checksum(found.index);
  if (!images.has_checksum(found.index)) {
    thread_local std::vector<std::byte> pixels;
    sources_[at.set].read(at.index, pixels);
    checksum = xxh3(pixels);
  }
  if (!free_) return checksum;
  const SampleSpec spec = images.spec_of(found.index);
  const std::array<std::uint64_t, 3> parts{checksum, spec.height, spec.width};
  return xxh3(std::as_bytes(std::span(parts)));
}

std::string SetList::key(std::uint64_t sample) const {
  const Place at = place(sample);
  const Source::Sample found = sources_[at.set].locate(at.index);
  return found.reader.key(found.index);
}

std::string SetList::label(std::uint64_t sample) const {
  const Place at = place(sample);
  const Source::Sample found = sources_[at.set].locate(at.index);
  return label_name(sources_[at.set], found.reader, found.index);
}

void SetList::read(std::uint64_t sample, std::vector<std::byte>& out) const {
  const Place at = place(sample);
  const SampleSpec spec = sources_[at.set].read(at.index, out);
  if (!free_) return;
  const std::array<std::uint32_t, 2> size{spec.height, spec.width};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(size));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void SetList::require_same_bytes_for_same_pixels() const {
  const DatasetInfo& first = sources_[0].info();
  for (std::size_t set = 1; set < sets(); ++set) {
    const DatasetInfo& other = sources_[set].info();
    // Bytes are stored as they are, whatever is to be done with them after loading.
    const bool normalized = first.spec.dtype != DType::u8;
    if (may_be_equal(first.spec, other.spec) && (!normalized || first.normalization == other.normalization))
      continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "the samples of {} are {}, those of {} are {}: equal pixels have equal bytes only in data "
            "sets of the same dtype, layout, shape and normalisation. Convert one of them with the "
            "options of the other, or compare how they look: --near 0",
            quoted(paths_[0]), samples_text(first), quoted(paths_[set]), samples_text(other)));
  }
}

bool SetList::is_across(std::span<const Member> group) const {
  return place(group.front().sample).set != place(group.back().sample).set;  // they are ascending
}

bool SetList::labels_differ(std::span<const Member> group) const {
  const std::string first = label(group.front().sample);
  return std::any_of(group.begin() + 1, group.end(),
                     [&](const Member& member) { return label(member.sample) != first; });
}

}  // namespace shard::ctl
