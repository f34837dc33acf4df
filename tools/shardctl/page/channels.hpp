// How the values of each channel are distributed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "shardctl/dataset/damage.hpp"
#include "shardctl/dataset/source.hpp"

namespace shard::ctl {

// How often each byte occurs.
struct ChannelCounts {
  std::array<std::uint64_t, 256> count{};
  double mean() const;
  double deviation() const;
  int lowest() const;
  int highest() const;
};

struct ChannelStatistics {
  std::vector<ChannelCounts> channels;
  std::uint64_t samples = 0;  // that were measured
};

// Of at most `most` samples, evenly spread, with normalisation undone. Damaged ones are noted and left out.
ChannelStatistics measure_channels(const Source& source, std::uint64_t most, unsigned threads,
                                   Damage& damage);

}  // namespace shard::ctl
