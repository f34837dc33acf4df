// Reads the pages of a mapped file, so that a page that cannot be read is an error here instead of a signal
// later.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>

#include "shard/shard_reader.hpp"

namespace shard {

// `range` is a part of the mapping of the file at `path`, and starts at a page. `stop` is checked before each
// piece of kPopulatePiece bytes. If pages cannot be read, `check_file` may say better why. Errors: those of
// `check_file`; io, cancelled.
inline constexpr std::size_t kPopulatePiece = std::size_t{64} << 20U;
void populate(const std::filesystem::path& path, std::span<const std::byte> range,
              const std::stop_token& stop, const std::function<void()>& check_file);
// Of a shard. Errors also: corrupt (its file was cut).
void populate(const ShardReader& shard, std::span<const std::byte> range, const std::stop_token& stop);

}  // namespace shard
