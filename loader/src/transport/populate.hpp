// Reads the pages of a mapped file in, so that one that cannot be had is an error here and not a signal
// later.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include "shard/shard_reader.hpp"

namespace shard {

// `range` is a part of the shard's mapping and page-aligned at its begin. `stop` is looked at before each
// piece of kPopulatePiece bytes. Errors, naming the shard: corrupt (its file was cut), io, cancelled.
inline constexpr std::size_t kPopulatePiece = std::size_t{64} << 20U;
void populate(const ShardReader& shard, std::span<const std::byte> range, const std::stop_token& stop);

}  // namespace shard
