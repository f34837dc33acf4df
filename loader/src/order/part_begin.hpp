// How the rows of a global batch, or the samples of a data set, are divided among the ranks.
#pragma once

#include <cstdint>

namespace shard {

// floor(part * n / parts): where part `part` begins if n items are divided into `parts` parts whose sizes
// differ by at most one. part: 0 to parts, which is below 2^32.
constexpr std::uint64_t part_begin(std::uint64_t n, std::uint64_t part, std::uint64_t parts) noexcept {
  return n / parts * part + n % parts * part / parts;
}

}  // namespace shard
