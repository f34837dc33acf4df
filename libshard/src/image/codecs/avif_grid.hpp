// The order of the tiles of an AVIF grid, which libavif before 1.1.1 takes from the numbers of its table of
// items (its issue 2311) instead of the list of tiles that the grid has ("dimg", ISO/IEC 23008-12, 6.6.2.3).
#pragma once

#include <cstddef>
#include <span>

namespace shard::image {

// False: such a libavif puts tiles of a grid in this file into wrong places, or what it does cannot be told.
// Bounded by the size of the file.
bool has_grids_in_item_order(std::span<const std::byte> file);

}  // namespace shard::image
