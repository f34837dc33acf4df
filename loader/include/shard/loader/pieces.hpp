// Copies from memory that is registered in pieces. No copy may read from two of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard {

// Appends `item` to `copies`, divided at the ends of pieces. Its source is `offset` bytes after the start of
// the registered memory. `piece_bytes`: DeviceInfo::registration_piece_bytes; 0: there is one piece.
inline void add_pieces(CopyItem item, std::uint64_t offset, std::uint64_t piece_bytes,
                       std::vector<CopyItem>& copies) {
  while (piece_bytes != 0 && offset % piece_bytes + item.size_bytes > piece_bytes) {
    const std::uint64_t size = piece_bytes - offset % piece_bytes;
    copies.push_back({item.target, item.source, size});
    item.target += size;
    item.source += size;
    item.size_bytes -= size;
    offset += size;
  }
  copies.push_back(item);
}

}  // namespace shard
