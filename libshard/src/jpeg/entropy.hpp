// Entropy decoding of baseline JPEG: a block, and a piece of up to 8 MCUs from its entry point. Shared by
// host and device; takes bounded time and stays inside its buffers whatever the bytes and the entry say.
//
// ITU-T T.81: F.2.2.1 (DC), F.2.2.2 (AC), E.2.4 (restarts). As libjpeg-turbo does: predictors and
// coefficients have 16 bits, and a run that leads beyond the block ends at its last coefficient.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/bits.hpp"
#include "jpeg/huffman.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

// Why a piece cannot be decoded.
enum class Fault : std::uint8_t {
  none,
  code,     // bits that are no Huffman code
  overrun,  // the data end within the piece
  restart,  // no restart marker where one must be
  end,      // the piece does not end where the next one begins, or with other predictors
};

// Where a piece begins.
struct EntryPoint {
  std::uint32_t position = 0;  // bits of the file's bytes from the first byte of the scan's data on
  std::uint16_t predictors[kMostComponents] = {};
};

// Position of coefficient k of the zigzag in a block of 8 rows of 8.
SHARD_EXACT constexpr std::uint32_t natural_order(std::uint32_t k) noexcept {
  constexpr std::uint8_t kOrder[kBlockValues] = {
      0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
      41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
      30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  return kOrder[k < kBlockValues ? k : kBlockValues - 1];
}

// The value of `size` bits, 1 to 15 (T.81, F.12).
SHARD_EXACT constexpr std::int32_t extend(std::uint32_t bits, std::uint32_t size) noexcept {
  const auto value = static_cast<std::int32_t>(bits);
  return bits >> (size - 1) != 0 ? value : value - (1 << size) + 1;
}

// Gives sink.put(natural order, value) each coefficient that the data have; the others are 0. False: no code.
template <class Bytes, class Sink>
SHARD_EXACT bool decode_block(BitReader<Bytes>& bits, const std::uint16_t* dc, const std::uint16_t* ac,
                              std::uint16_t& predictor, Sink& sink) {
  bits.refill();
  std::uint32_t entry = look_up(dc, bits.peek16());
  if (entry == 0) return false;
  bits.skip(entry >> 8);
  if (const std::uint32_t size = entry & 15U; size != 0)
    predictor = static_cast<std::uint16_t>(predictor + extend(bits.take(size), size));
  sink.put(0, static_cast<std::int16_t>(predictor));
  for (std::uint32_t k = 1; k < kBlockValues; ++k) {
    bits.refill();
    entry = look_up(ac, bits.peek16());
    if (entry == 0) return false;
    bits.skip(entry >> 8);
    const std::uint32_t run = (entry >> 4) & 15U;
    const std::uint32_t size = entry & 15U;
    if (size == 0) {
      if (run != 15) break;
      k += 15;
      continue;
    }
    k += run;
    sink.put(natural_order(k), static_cast<std::int16_t>(extend(bits.take(size), size)));
  }
  return true;
}

// What all pieces of a file have in common. `look_ups` are kLookUpEntries each: `dc` of the tables 0 to 3,
// then `ac`.
template <class Bytes>
struct Scan {
  Bytes bytes;
  std::uint32_t first = 0;  // byte of the file
  std::uint32_t end = 0;    // behind the last byte that may be read
  const std::uint16_t* look_ups = nullptr;

  SHARD_EXACT const std::uint16_t* dc(std::uint32_t table) const { return look_ups + table * kLookUpEntries; }
  SHARD_EXACT const std::uint16_t* ac(std::uint32_t table) const {
    return look_ups + (4 + table) * kLookUpEntries;
  }
};

// Decodes a piece. The sink is told sink.begin(component, block row, block column), the coefficients, and
// sink.end(). `next`: where the following piece begins; for the last one only its position counts.
template <class Bytes, class Sink>
SHARD_EXACT Fault decode_piece(const Layout& layout, const Scan<Bytes>& scan, std::uint32_t piece,
                               const EntryPoint& entry, const EntryPoint& next, Sink& sink) {
  const std::uint32_t row = piece / layout.pieces_of_row();
  const std::uint32_t first = piece % layout.pieces_of_row() * kMcusPerPiece;
  const std::uint32_t left = layout.mcu_columns - first;
  const std::uint32_t end = first + (left < kMcusPerPiece ? left : kMcusPerPiece);
  BitReader<Bytes> bits(scan.bytes, scan.first, scan.end, entry.position);
  std::uint16_t predictors[kMostComponents];
  for (std::uint32_t c = 0; c < kMostComponents; ++c) predictors[c] = entry.predictors[c];
  for (std::uint32_t column = first; column < end; ++column) {
    for (std::uint32_t i = 0; i < layout.blocks_of_mcu; ++i) {
      const McuBlock block = layout.blocks[i];
      const Plane& plane = layout.planes[block.component];
      sink.begin(block.component, row * plane.v + block.y, column * plane.h + block.x);
      const bool found =
          decode_block(bits, scan.dc(plane.dc), scan.ac(plane.ac), predictors[block.component], sink);
      sink.end();
      if (!found) return bits.overrun() ? Fault::overrun : Fault::code;
    }
    if (bits.overrun()) return Fault::overrun;
    const std::uint32_t behind = row * layout.mcu_columns + column + 1;
    if (!layout.restarts_at(behind)) continue;
    if (!bits.restart((behind / layout.restart_interval - 1) % 8)) return Fault::restart;
    for (std::uint16_t& predictor : predictors) predictor = 0;
  }
  if (bits.position() != next.position) return Fault::end;
  if (piece + 1 == layout.pieces()) return Fault::none;
  for (std::uint32_t c = 0; c < layout.components; ++c)
    if (predictors[c] != next.predictors[c]) return Fault::end;
  return Fault::none;
}

}  // namespace shard::jpeg
