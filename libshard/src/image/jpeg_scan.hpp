// Tells bytes that an encoder left behind the image data of a JPEG from image data that a damaged file's
// decoder did not get to. libjpeg has one warning for both ("extraneous bytes before marker").
//
// Damage changes how the Huffman codes behind it are read: blocks come out shorter or longer, and the last
// block is complete before the data end. So the codes are walked again, without decoding pixels:
//
//   ...last block | 1 1 1 | bytes behind the image | marker        intact: the rest of the byte is padding
//   (1s),
//                   padding                                        and what follows is no image data
//   ...last block | blocks that nobody asked for   | marker        damaged
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

// `data`: from the first byte behind the scan's header to the end of the file. True: each interval's blocks
// are followed by padding, and what lies between the padding and the next marker does not read as further
// blocks.
bool ends_where_encoders_end(const SequentialScan& scan, std::span<const std::byte> data);

}  // namespace shard::image
