// The header of a JPEG file, up to the entropy-coded data of its scan, as the kernels decode it:
//
//   8 bits, sequential (SOF0, SOF1), Huffman codes, one scan of all components in their order
//   1, 3 or 4 components; factors of 1 to 4, each dividing the largest; at most 10 blocks per MCU
//
// A header that libjpeg-turbo would read in another way, or with a warning, is refused.
//
// Errors:
//   unsupported  a JPEG of another kind, for libjpeg-turbo: the message says which
//   corrupt      segments that break T.81, with the value found
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jpeg/header_scan.hpp"
#include "jpeg/huffman.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

struct Header {
  Layout layout;
  std::array<std::array<std::uint16_t, kBlockValues>, kMostTables> quantization{};  // zigzag
  std::array<HuffmanTable, kMostTables> dc{};
  std::array<HuffmanTable, kMostTables> ac{};
  bool adobe = false;             // the file has Adobe's marker
  std::uint32_t data_offset = 0;  // the first byte of entropy-coded data
};

// Throws what the fault says: corrupt or unsupported, with the values of the scan.
[[noreturn]] void throw_header_fault(const HeaderScan& scan);

// At most 2^32 - 1 bytes. The tables that the scan uses are there, and make prefix codes.
Header parse_header(std::span<const std::byte> file);

// The same without tables, for who needs the geometry alone: it takes a fifth of the time. The orientation is
// 1. None where parse_header() throws.
std::optional<FrameFile> find_frame_file(std::span<const std::byte> file) noexcept;

}  // namespace shard::jpeg
