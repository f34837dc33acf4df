// Reads the pages of a mapped file, so that a page that cannot be read is an error here instead of a signal
// later.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include "shard/shard_reader.hpp"

namespace shard {

// `range` is a part of the shard's mapping that starts at a page. `stop` is checked before each piece of
// kPopulatePiece bytes. Errors, naming the shard: corrupt (its file was cut), io, cancelled.
inline constexpr std::size_t kPopulatePiece = std::size_t{64} << 20U;
void populate(const ShardReader& shard, std::span<const std::byte> range, const std::stop_token& stop);

}  // namespace shard
