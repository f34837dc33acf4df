// Selection: a rule that says which samples of a data set are taken. Dataset::select() applies it.
//
//   const Selection cats = Selection::classes({"cat", "lynx"});
//   const Dataset some = data.select(cats & !Selection::ranges({{0, 100}}));
//   const auto [train, validation] = data.split(0.9);
//
// A selection is a set: the selected samples keep the order of the data set, whatever the order in which
// they were named. Immutable, cheap to copy, thread safe. While it is applied it needs one bit for each
// sample of the data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shard/error.hpp"

namespace shard {

class Dataset;

// One bit for each sample of a data set.
class SampleBits {
 public:
  explicit SampleBits(std::uint64_t samples) : samples_(samples), words_((samples + 63) / 64) {}
  std::uint64_t size() const noexcept { return samples_; }
  bool operator[](std::uint64_t sample) const noexcept {
    return (words_[sample / 64] >> (sample % 64) & 1U) != 0;
  }
  void set(std::uint64_t sample) noexcept { words_[sample / 64] |= std::uint64_t{1} << (sample % 64); }
  // 64 samples each; the bits after the last sample are 0.
  std::span<std::uint64_t> words() noexcept { return words_; }
  std::span<const std::uint64_t> words() const noexcept { return words_; }

 private:
  std::uint64_t samples_;
  std::vector<std::uint64_t> words_;
};

// By which hashes of keys samples were selected: by seed, how many levels of them (Selection::hashed()).
using HashCuts = std::map<std::uint64_t, std::uint32_t>;

class Selection {
 public:
  // These samples, in any order. Errors when it is applied: invalid_argument (an index that does not exist,
  // or that is given twice).
  static Selection indices(std::vector<std::uint64_t> indices);
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // not in it
  };
  // Samples of any of the ranges, which may overlap. Errors when it is applied:
  // invalid_argument (begin > end, or end beyond the last sample).
  static Selection ranges(std::vector<Range> ranges);
  // Samples of these classes. Names as in DatasetInfo::classes. Errors when it is applied: invalid_argument
  // (no such class), unsupported (labels come from a table).
  static Selection classes(std::vector<std::string> names);
  // Samples whose label fulfils the predicate. Errors when it is applied:
  // unsupported (labels are not I64 [N]).
  static Selection labels(std::function<bool(std::int64_t label)> predicate);
  // Samples whose row of this column fulfils the predicate; with a ragged or text column it gets all rows of
  // the sample. Errors when it is applied: not_found.
  static Selection column(std::string name, std::function<bool(std::span<const std::byte> row)> predicate);
  // Samples whose index fulfils the predicate.
  static Selection where(std::function<bool(const Dataset& data, std::uint64_t index)> predicate);
  // Samples whose key's hash, as a fraction of all hashes, is in [from, to), 0 <= from <= to <= 1. It depends
  // on key and seed only: data that are added later move no sample from one part to another, and equal keys
  // stay together. Source of the hash: XXH3-64 of the key, mixed with the seed by SplitMix64's finalizer.
  // Throws invalid_argument. A part that was cut by this hash has only some of its values, so that cutting it
  // by the same hash again gives other shares, or nothing. level: each has a hash of its own, independent of
  // the others. Dataset::cuts() is the first that is not used.
  static Selection hashed(double from, double to, std::uint64_t seed = 0, std::uint32_t level = 0);
  // One bit for each sample. Errors when it is applied: invalid_argument (a data set of another size).
  static Selection bits(SampleBits bits);

  friend Selection operator&(const Selection& a, const Selection& b);
  friend Selection operator|(const Selection& a, const Selection& b);
  friend Selection operator!(const Selection& a);

  // Errors: those above; those of reading the data set.
  SampleBits apply(const Dataset& data) const;
  // The hashes by which it cuts: by seed, the highest level and 1.
  const HashCuts& cuts() const noexcept { return cuts_; }

 private:
  using Rule = std::function<SampleBits(const Dataset&)>;
  explicit Selection(Rule rule, HashCuts cuts = {})
      : rule_(std::make_shared<const Rule>(std::move(rule))), cuts_(std::move(cuts)) {}
  std::shared_ptr<const Rule> rule_;
  HashCuts cuts_;
};

}  // namespace shard
