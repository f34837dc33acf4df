// Entropy decoding of baseline JPEG: a piece of up to 8 MCUs from its entry point. Shared by host and device;
// takes bounded time and stays inside its buffers whatever the bytes and the entry say.
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
  rest,     // something else than the end of the file's image follows the last MCU
  lanes,    // the file is too large for what its index would take on a device
};

// Where a piece begins.
struct EntryPoint {
  std::uint32_t position = 0;  // bits of the file's bytes from the first byte of the scan's data on
  std::uint16_t predictors[kMostComponents] = {};
};

// The value of `size` bits, 1 to 15 (T.81, F.12).
SHARD_EXACT constexpr std::int32_t extend(std::uint32_t bits, std::uint32_t size) noexcept {
  const auto value = static_cast<std::int32_t>(bits);
  return bits >> (size - 1) != 0 ? value : value - (1 << size) + 1;
}

// What all pieces of a file have in common. `look_ups`: kLookUpEntries for each DC table, then for each AC
// table.
template <class Bytes>
struct Scan {
  Bytes bytes;
  std::uint32_t first = 0;  // byte of the file
  std::uint32_t end = 0;    // behind the last byte that may be read
  const std::uint16_t* look_ups = nullptr;
  std::uint32_t dc_tables = 0;
};

// Decodes a piece code by code, so that the lanes of a GPU can all take a code at a time, DC or AC.
//
//   for (bool more = true; more; more = decoder.next()) {   for each block
//     decoder.block() ...                                   which one
//     while (!decoder.step(put)) {}                         put(k, value) for each coefficient that is not 0
//   }
//   fault = decoder.finish(next entry)
template <class Bytes>
class PieceDecoder {
 public:
  // Borrows `layout` and what `scan` points to. `piece` is below layout.pieces().
  SHARD_EXACT PieceDecoder(const Layout& layout, const Scan<Bytes>& scan, std::uint32_t piece,
                           const EntryPoint& entry)
      : layout_(layout),
        dc_look_ups_(scan.look_ups),
        ac_look_ups_(scan.look_ups + scan.dc_tables * kLookUpEntries),
        bits_(scan.bytes, scan.first, scan.end, entry.position),
        row_(piece / layout.pieces_of_row()),
        column_(piece % layout.pieces_of_row() * kMcusPerPiece) {
    const std::uint32_t left = layout.mcu_columns - column_;
    end_ = column_ + (left < kMcusPerPiece ? left : kMcusPerPiece);
    for (std::uint32_t c = 0; c < kMostComponents; ++c)
      predictors_ |= std::uint64_t{entry.predictors[c]} << (16 * c);
    choose_block();
  }

  struct Block {
    std::uint32_t component;
    std::uint32_t row;  // of the component's blocks
    std::uint32_t column;
  };
  SHARD_EXACT Block block() const {
    const McuBlock& block = layout_.blocks[block_];
    const Plane& plane = layout_.planes[block.component];
    return {block.component, row_ * plane.v + block.y, column_ * plane.h + block.x};
  }

  // Decodes one code; calls put(k of the zigzag, value) at most once. True: the block is complete, or faulty.
  template <class Put>
  SHARD_EXACT bool step(const Put& put) {
    bits_.refill();
    const std::uint32_t entry = look_up(k_ == 0 ? dc_ : ac_, bits_.peek16());
    if (entry == 0) {
      fault_ = bits_.overrun() ? Fault::overrun : Fault::code;
      return true;
    }
    bits_.skip(entry >> 8);
    const std::uint32_t size = entry & 15U;
    const std::uint32_t run = (entry >> 4) & 15U;
    const std::int32_t value = size == 0 ? 0 : extend(bits_.take(size), size);
    if (k_ == 0) {
      const std::uint32_t shift = 16 * component_;
      const auto sum = static_cast<std::uint16_t>((predictors_ >> shift) + static_cast<std::uint32_t>(value));
      predictors_ = (predictors_ & ~(std::uint64_t{0xFFFF} << shift)) | std::uint64_t{sum} << shift;
      put(0, static_cast<std::int16_t>(sum));
      k_ = 1;
      return false;
    }
    if (size == 0) {
      k_ = run == 15 ? k_ + 16 : kBlockValues;
    } else {
      k_ += run;
      put(k_ < kBlockValues ? k_ : kBlockValues - 1, static_cast<std::int16_t>(value));
      ++k_;
    }
    return k_ >= kBlockValues;
  }

  // To the next block. False: the piece is complete, or faulty.
  SHARD_EXACT bool next() {
    if (fault_ != Fault::none) return false;
    if (++block_ == layout_.blocks_of_mcu) {
      block_ = 0;
      const bool more = next_mcu();
      if (!more) return false;
    }
    choose_block();
    return true;
  }

  // After the last block. `next`: where the following piece begins; for the last one only its position
  // counts.
  SHARD_EXACT Fault finish(const EntryPoint& next) const {
    if (fault_ != Fault::none) return fault_;
    if (bits_.position() != next.position) return Fault::end;
    if (row_ + 1 == layout_.mcu_rows && end_ == layout_.mcu_columns) return Fault::none;
    for (std::uint32_t c = 0; c < layout_.components; ++c)
      if (static_cast<std::uint16_t>(predictors_ >> (16 * c)) != next.predictors[c]) return Fault::end;
    return Fault::none;
  }

 private:
  SHARD_EXACT void choose_block() {
    component_ = layout_.blocks[block_].component;
    const Plane& plane = layout_.planes[component_];
    dc_ = dc_look_ups_ + plane.dc * kLookUpEntries;
    ac_ = ac_look_ups_ + plane.ac * kLookUpEntries;
    k_ = 0;
  }
  SHARD_EXACT bool next_mcu() {
    if (bits_.overrun()) {
      fault_ = Fault::overrun;
      return false;
    }
    ++column_;
    if (layout_.restart_interval != 0) {
      const std::uint32_t mcu = row_ * layout_.mcu_columns + column_;
      if (layout_.restarts_at(mcu)) {
        predictors_ = 0;
        if (!bits_.restart((mcu / layout_.restart_interval - 1) % 8)) fault_ = Fault::restart;
      }
    }
    return column_ < end_ && fault_ == Fault::none;
  }

  const Layout& layout_;
  const std::uint16_t* dc_look_ups_;
  const std::uint16_t* ac_look_ups_;
  BitReader<Bytes> bits_;
  std::uint64_t predictors_ = 0;  // 16 bits of each component
  const std::uint16_t* dc_ = nullptr;
  const std::uint16_t* ac_ = nullptr;
  std::uint32_t row_;  // of MCUs
  std::uint32_t column_;
  std::uint32_t end_ = 0;    // of the piece's columns
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t component_ = 0;
  std::uint32_t k_ = 0;  // of the coefficient that comes next
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
