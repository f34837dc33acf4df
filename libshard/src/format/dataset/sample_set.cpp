#include "format/dataset/sample_set.hpp"

#include <algorithm>
#include <bit>

namespace shard {

namespace {

constexpr std::uint64_t kBlock = 512;  // samples
constexpr std::uint64_t kWords = kBlock / 64;
constexpr std::uint64_t kHint = 512;  // members

// The position of the member of `word` that has `rank` members below it.
std::uint64_t select_in_word(std::uint64_t word, std::uint64_t rank) noexcept {
  for (; rank > 0; --rank) word &= word - 1;
  return static_cast<std::uint64_t>(std::countr_zero(word));
}

}  // namespace

void set_bits(std::span<std::uint64_t> words, std::uint64_t begin, std::uint64_t end) noexcept {
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t stop = std::min(end, (at / 64 + 1) * 64);
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - (stop - at));
    words[at / 64] |= ones << (at % 64);
    at = stop;
  }
}

void SampleSet::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  if (in_bits()) {
    set_bits(bits_, begin, end);
  } else if (!runs_.empty() && run_end(runs_.size() - 1) == begin) {
    // The last run grows.
  } else {
    runs_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size_)});
  }
  size_ += end - begin;
  if (!in_bits() && runs_.size() > std::max<std::uint64_t>(8, universe_ / 64)) to_bits();
}

std::uint64_t SampleSet::run_end(std::size_t run) const noexcept {
  const std::uint64_t after = run + 1 < runs_.size() ? runs_[run + 1].before : size_;
  return runs_[run].first + after - runs_[run].before;
}

void SampleSet::to_bits() {
  bits_.assign((universe_ + kBlock - 1) / kBlock * kWords, 0);
  for (std::size_t run = 0; run < runs_.size(); ++run) set_bits(bits_, runs_[run].first, run_end(run));
  runs_ = {};
}

void SampleSet::finish() {
  runs_.shrink_to_fit();
  std::uint64_t before = 0;
  for (std::uint64_t block = 0; block * kWords < bits_.size(); ++block) {
    ranks_.push_back(static_cast<std::uint32_t>(before));
    for (std::uint64_t word = 0; word < kWords; ++word)
      before += static_cast<std::uint64_t>(std::popcount(bits_[block * kWords + word]));
    while (hints_.size() * kHint < before) hints_.push_back(static_cast<std::uint32_t>(block));
  }
}

std::uint64_t SampleSet::operator[](std::uint64_t rank) const noexcept {
  if (!in_bits()) {
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), rank,
                         [](std::uint64_t value, const Start& run) { return value < run.before; });
    const Start& run = *(after - 1);
    return run.first + rank - run.before;
  }
  // The block of the member lies between those of the hints around it.
  const std::uint64_t hint = rank / kHint;
  const auto first = ranks_.begin() + hints_[hint];
  const auto last = hint + 1 < hints_.size() ? ranks_.begin() + hints_[hint + 1] + 1 : ranks_.end();
  const auto block = static_cast<std::uint64_t>(std::upper_bound(first, last, rank) - ranks_.begin()) - 1;
  std::uint64_t left = rank - ranks_[block];
  std::uint64_t word = block * kWords;
  for (;; ++word) {
    const auto members = static_cast<std::uint64_t>(std::popcount(bits_[word]));
    if (left < members) break;
    left -= members;
  }
  return word * 64 + select_in_word(bits_[word], left);
}

SampleSet::Run SampleSet::run_from(std::uint64_t from) const noexcept {
  if (!in_bits()) {
    auto run = std::upper_bound(runs_.begin(), runs_.end(), from,
                                [](std::uint64_t value, const Start& start) { return value < start.first; });
    if (run != runs_.begin()) {
      const std::uint64_t end = run_end(static_cast<std::size_t>(run - runs_.begin()) - 1);
      if (from < end) return {from, end};
    }
    if (run == runs_.end()) return {};
    return {run->first, run_end(static_cast<std::size_t>(run - runs_.begin()))};
  }
  // The next position whose bit, inverted by `flip`, is 1.
  const auto next = [this](std::uint64_t at, std::uint64_t flip) {
    for (; at < universe_; at = (at / 64 + 1) * 64) {
      const std::uint64_t word = (bits_[at / 64] ^ flip) >> (at % 64);
      if (word != 0) return std::min(universe_, at + static_cast<std::uint64_t>(std::countr_zero(word)));
    }
    return universe_;
  };
  const std::uint64_t begin = next(from, 0);
  if (begin >= universe_) return {};
  return {begin, next(begin, ~std::uint64_t{0})};
}

std::uint64_t SampleSet::memory_bytes() const noexcept {
  return runs_.capacity() * sizeof(Start) + bits_.capacity() * 8 +
         (ranks_.capacity() + hints_.capacity()) * 4;
}

}  // namespace shard
