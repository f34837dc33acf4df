// Sizes as people write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "shard/error.hpp"

namespace shard {

// "4096", "64KiB", "256 MiB", "1.5GB", "2g": decimal (K, KB, ...: 1000, as sold) or binary (KiB, ...: 1024)
// units; a bare letter k, m, g, t is binary. Throws invalid_argument, naming the text, when it is no size or
// exceeds 64 bits.
std::uint64_t parse_size(std::string_view text);

}  // namespace shard
