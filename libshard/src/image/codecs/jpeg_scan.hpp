// Finds out why bytes are left after the image data of a JPEG: an encoder wrote them, or the file is damaged
// and they are image data that the decoder did not reach. libjpeg has one warning for both ("extraneous bytes
// before marker").
//
// Damage changes how the Huffman codes after it are read: blocks become shorter or longer, and the last block
// is complete before the data end. So the codes are read again, without decoding pixels:
//
//   ... last block | 1 1 1 (padding) | other bytes | marker    intact: 1s fill the byte, no block follows
//   ... last block | further blocks                | marker    damaged
//
// ITU-T T.81: F.1.2.3 (padding), F.2.2 (decoding of sequential scans), E.1.4 (restart intervals).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard::image {

// The lengths of a table's codes and what they stand for, as in a DHT segment.
struct HuffmanCodes {
  std::array<std::uint8_t, 17> counts{};  // of codes of 1 to 16 bits; [0] is unused
  std::array<std::uint8_t, 256> symbols{};
};

struct SequentialScan {
  struct Block {
    HuffmanCodes dc;
    HuffmanCodes ac;
  };
  std::vector<Block> blocks;  // of one MCU, in their order
  std::uint64_t mcus = 0;
  std::uint32_t restart_interval = 0;  // MCUs; 0: none
};

// `data`: from the first byte after the scan's header to the end of the file. True: the blocks of each
// interval are followed by padding, and the bytes between the padding and the next marker cannot be read as
// further blocks.
bool ends_where_encoders_end(const SequentialScan& scan, std::span<const std::byte> data);

}  // namespace shard::image
