// Sorts on several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/system/parallel.hpp"

namespace shard {

// As std::sort, on at most `threads` threads: pieces are sorted, and neighbours merged where they overlap.
// What is sorted already takes one pass. Memory: up to half of the items again.
template <class T, class Less>
void parallel_sort(unsigned threads, std::vector<T>& items, const Less& less) {
  constexpr std::size_t kSmallestPiece = 4096;
  if (std::is_sorted(items.begin(), items.end(), less)) return;
  const std::size_t pieces = std::clamp<std::size_t>(items.size() / kSmallestPiece, 1, std::max(threads, 1U));
  const auto begin_of = [&](std::size_t piece) {
    const std::size_t at = items.size() / pieces * piece + items.size() % pieces * piece / pieces;
    return items.begin() + static_cast<std::ptrdiff_t>(at);
  };
  parallel_for(threads, pieces,
               [&](unsigned, std::uint64_t piece) { std::sort(begin_of(piece), begin_of(piece + 1), less); });
  for (std::size_t width = 1; width < pieces; width *= 2)
    parallel_for(threads, (pieces + 2 * width - 1) / (2 * width), [&](unsigned, std::uint64_t pair) {
      const std::size_t first = pair * 2 * width;
      if (first + width >= pieces) return;
      const auto middle = begin_of(first + width);
      if (less(*middle, *(middle - 1)))
        std::inplace_merge(begin_of(first), middle, begin_of(std::min(first + 2 * width, pieces)), less);
    });
}

}  // namespace shard
