// Members: the samples of each group, and the k-th of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shard {

// Immutable once built, then thread safe.
class Members {
 public:
  // Consecutive samples: group g has sizes[g] of them.
  explicit Members(std::span<const std::uint64_t> sizes) {
    for (const std::uint64_t size : sizes) {
      sizes_.push_back(size);
      first_run_.push_back(runs_.size());
      runs_.push_back({samples_, 0});
      samples_ += size;
    }
    first_run_.push_back(runs_.size());
  }
  // By sample, the group; groups of them.
  Members(std::span<const std::uint32_t> group_of, std::size_t groups)
      : samples_(group_of.size()), sizes_(groups) {
    std::uint64_t changes = 0;
    for (std::size_t i = 0; i < group_of.size(); ++i) {
      ++sizes_[group_of[i]];
      changes += i == 0 || group_of[i] != group_of[i - 1] ? 1U : 0U;
    }
    if (changes * 4 <= samples_)
      by_runs(group_of);
    else if (samples_ <= UINT32_MAX)
      by_sample(group_of, short_);
    else
      by_sample(group_of, long_);
  }

  std::uint64_t samples() const noexcept { return samples_; }
  std::size_t groups() const noexcept { return sizes_.size(); }
  std::uint64_t size(std::size_t group) const noexcept { return sizes_[group]; }
  // Before at(), so that several reads from memory overlap.
  void prefetch(std::size_t group, std::uint64_t rank) const noexcept {
    if (!short_.empty()) __builtin_prefetch(&short_[begin_[group] + rank]);
    if (!long_.empty()) __builtin_prefetch(&long_[begin_[group] + rank]);
  }
  // rank < size(group).
  std::uint64_t at(std::size_t group, std::uint64_t rank) const noexcept {
    if (!short_.empty()) return short_[begin_[group] + rank];
    if (!long_.empty()) return long_[begin_[group] + rank];
    const auto first = runs_.begin() + static_cast<std::ptrdiff_t>(first_run_[group]);
    const auto last = runs_.begin() + static_cast<std::ptrdiff_t>(first_run_[group + 1]);
    const auto run = std::upper_bound(first, last, rank,
                                      [](std::uint64_t value, const Run& of) { return value < of.before; }) -
                     1;
    return run->first + rank - run->before;
  }

 private:
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t before = 0;  // members of its group before it
  };

  void by_runs(std::span<const std::uint32_t> group_of) {
    std::vector<std::vector<Run>> runs(groups());
    std::vector<std::uint64_t> found(groups());
    for (std::size_t i = 0; i < group_of.size(); ++i) {
      const std::uint32_t group = group_of[i];
      if (i == 0 || group != group_of[i - 1]) runs[group].push_back({i, found[group]});
      ++found[group];
    }
    for (const std::vector<Run>& of_group : runs) {
      first_run_.push_back(runs_.size());
      runs_.insert(runs_.end(), of_group.begin(), of_group.end());
    }
    first_run_.push_back(runs_.size());
    runs_.shrink_to_fit();
  }

  template <class Index>
  void by_sample(std::span<const std::uint32_t> group_of, std::vector<Index>& sorted) {
    std::uint64_t before = 0;
    for (const std::uint64_t size : sizes_) {
      begin_.push_back(before);
      before += size;
    }
    sorted.resize(samples_);
    std::vector<std::uint64_t> next = begin_;
    for (std::size_t i = 0; i < group_of.size(); ++i) sorted[next[group_of[i]]++] = static_cast<Index>(i);
  }

  std::uint64_t samples_ = 0;
  std::vector<std::uint64_t> sizes_;
  std::vector<Run> runs_;
  std::vector<std::size_t> first_run_;  // of each group; one more than groups
  // Else: the samples sorted by group, and where each group begins.
  std::vector<std::uint32_t> short_;
  std::vector<std::uint64_t> long_;
  std::vector<std::uint64_t> begin_;
};

}  // namespace shard
