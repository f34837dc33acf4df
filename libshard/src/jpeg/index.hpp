// The index of a JPEG's entry points as bytes. Little-endian:
//
//   offset        size   what
//   0             1      version, 1
//   1             1      components
//   2             1      MCUs per piece, 8
//   3             1      0
//   4             4      entries n: pieces of the image, row by row
//   8             4      offset of the first byte of entropy-coded data in the file
//   12            4      end of the last piece
//   16            4 n    position of each piece
//   16 + 4 n      2 n c  DC predictors of each piece, of each component, modulo 2^16
//
// Positions are bits of the file's bytes from the first byte of entropy-coded data on, stuffing and restart
// markers included: a frame is the file as it is, so a decoder needs no table from one count to the other.
// The position behind a byte 0xFF is the one behind its stuffing; where a restart marker stands before a
// piece, it is the one behind the marker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/host_device.hpp"
#include "jpeg/entropy.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

inline constexpr std::size_t kIndexHeadBytes = 16;
inline constexpr std::uint32_t kIndexVersion = 1;

// The first four bytes.
SHARD_EXACT constexpr std::uint32_t index_head(std::uint32_t components) noexcept {
  return kIndexVersion | components << 8 | kMcusPerPiece << 16;
}

// The bytes of an index; in 64 bits it cannot overflow.
SHARD_EXACT constexpr std::uint64_t index_bytes(const Layout& layout) noexcept {
  return kIndexHeadBytes + std::uint64_t{layout.pieces()} * (4 + 2 * layout.components);
}

std::vector<std::byte> encode_index(const Layout& layout, std::uint32_t data_offset,
                                    std::span<const EntryPoint> entries, std::uint32_t end);

// Borrows the bytes.
class Index {
 public:
  std::uint32_t size() const noexcept { return entries_; }
  // Where piece i begins. i == size(): the end of the last piece, without predictors.
  EntryPoint operator[](std::uint32_t i) const noexcept;

 private:
  friend Index parse_index(std::span<const std::byte>, const Layout&, std::uint32_t, std::size_t);
  std::span<const std::byte> bytes_;
  std::uint32_t entries_ = 0;
  std::uint32_t components_ = 0;
};

// Checks all that can be told without decoding: the size, the head against the header of the file, a
// beginning at bit 0 with predictors of 0, positions that are inside the file and grow by at least what the
// shortest codes take. corrupt with the value found. The rest is found by decoding: each piece must end where
// the next begins.
Index parse_index(std::span<const std::byte> bytes, const Layout& layout, std::uint32_t data_offset,
                  std::size_t file_bytes);

}  // namespace shard::jpeg
