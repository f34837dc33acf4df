// Several data sets as one.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "format/dataset/class_list.hpp"
#include "format/dataset/dataset_view.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {
namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_concat(const Dataset& a, const Dataset& b, const std::string& what) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} and {} cannot be one data set: {}; convert both with the same options",
                          quoted(a.path()), quoted(b.path()), what));
}

// Everything that must agree for samples to be in one batch.
void check_joinable(const Dataset& a, const Dataset& b) {
  DatasetSpec ours = a.info();
  const DatasetSpec& theirs = b.info();
  ours.codec = theirs.codec;
  for (std::size_t i = 0; i < std::min(ours.fields.size(), theirs.fields.size()); ++i)
    ours.fields[i].codec = theirs.fields[i].codec;
  ours.fingerprint = theirs.fingerprint;
  ours.provenance = theirs.provenance;
  if (const auto it = difference(theirs, ours))
    refuse_concat(
        a, b, fmt::format("the {} of the first is {}, of the second {}", it->what, it->stated, it->found));
  if (a.info().classes.empty() != b.info().classes.empty())
    refuse_concat(
        a, b,
        fmt::format("{} has classes, the other does not", quoted((a.info().classes.empty() ? b : a).path())));
}

// Keeps what both say alike.
void keep_common(Provenance& ours, const Provenance& theirs) {
  for (auto it = ours.begin(); it != ours.end();) {
    const auto other = theirs.find(it->first);
    it = other == theirs.end() || other->second != it->second ? ours.erase(it) : std::next(it);
  }
}

// Labels in the shard -> in a part that is a data set of several itself -> in the whole.
std::shared_ptr<const LabelMap> chain(const std::shared_ptr<const LabelMap>& first,
                                      const std::shared_ptr<const LabelMap>& second) {
  if (!first || !second) return first ? first : second;
  auto both = std::make_shared<LabelMap>(*first);
  for (std::int64_t& label : *both) label = (*second)[static_cast<std::size_t>(label)];
  return both;
}

// Frames of all levels are read alike.
bool are_read_alike(const DatasetInfo& one, const DatasetInfo& other) {
  return one.codec.kind == other.codec.kind &&
         std::equal(one.fields.begin(), one.fields.end(), other.fields.begin(), other.fields.end(),
                    [](FieldSpec a, const FieldSpec& b) {
                      if (a.codec.kind == b.codec.kind) a.codec.level = b.codec.level;
                      return a == b;
                    });
}

}  // namespace

Dataset Dataset::open(std::span<const fs::path> paths) {
  std::vector<Dataset> parts;
  for (const fs::path& path : paths) parts.push_back(open(path));
  return concat(parts);
}

Dataset Dataset::open(std::initializer_list<fs::path> paths) {
  return open(std::span<const fs::path>(paths.begin(), paths.size()));
}

Dataset Dataset::concat(std::span<const Dataset> parts) {
  if (parts.empty()) throw Error(ErrorCode::invalid_argument, "no data sets are given to be one");
  if (parts.size() == 1) return parts.front();
  DatasetInfo info = parts.front().info();
  info.shards.clear();
  info.parts.clear();
  info.tables.clear();
  info.inputs = info.rejects = info.samples_per_shard = 0;
  ClassList classes;
  std::vector<ViewShard> shards;
  std::string path;
  std::string fingerprints;
  std::string digests;
  bool one_fingerprint = true;
  TargetKinds targets = known_targets(info);
  for (const Dataset& part : parts) {
    const DatasetInfo& of = part.info();
    check_joinable(parts.front(), part);
    keep_common(info.provenance, of.provenance);
    targets = common_targets(targets, known_targets(of));
    info.mixed_codecs = info.mixed_codecs || of.mixed_codecs || !are_read_alike(of, info);
    const auto labels = classes.add(of.classes);
    for (ViewShard shard : part.impl_->shards) {
      shard.labels = chain(shard.labels, labels);
      shards.push_back(std::move(shard));
    }
    info.shards.insert(info.shards.end(), of.shards.begin(), of.shards.end());
    info.inputs += of.inputs;
    info.rejects += of.rejects;
    one_fingerprint = one_fingerprint && of.fingerprint == parts.front().info().fingerprint;
    fingerprints += of.fingerprint + ' ';
    digests += of.source_digest + ' ';
    path += (path.empty() ? "" : " + ") + part.path().string();
  }
  info.classes = classes.names();
  info.targets = std::move(targets);
  if (!one_fingerprint) info.fingerprint = to_hex(xxh3(fingerprints));
  info.source_digest = to_hex(xxh3(digests));
  auto impl = std::make_shared<Impl>(std::move(shards), std::move(info), std::move(path));
  for (const Dataset& part : parts) impl->add_cuts(part.impl_->cuts);
  return Dataset(std::move(impl));
}

}  // namespace shard
