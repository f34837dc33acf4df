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
#include "jpeg/region.hpp"
#include "jpeg/skip_table.hpp"

namespace shard::jpeg {

// Why a piece cannot be decoded.
enum class Fault : std::uint8_t {
  none,
  code,     // bits that are no Huffman code
  overrun,  // the data end within the piece
  restart,  // no restart marker where one must be
  end,      // the piece does not end where the next one begins, or with other predictors
  header,   // the header is not for the kernels, or not what the index or the shard says of it
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

// A block of the MCU: its component, where its tables begin among the codes, and which line of the
// coefficients it is: lines are 64 coefficients, of all blocks of a window, component by component, row by
// row.
struct BlockPlan {
  std::uint32_t line = 0;       // in the window's first MCU
  std::uint32_t row_lines = 0;  // from one MCU row to the next
  std::uint16_t column_lines = 0;
  std::uint16_t component = 0;
  std::uint16_t dc = 0;  // first entry of the table
  std::uint16_t ac = 0;
  std::uint16_t skip = kNoSkip;  // first entry of the AC table's PackedSkips
};

// What all pieces of a window of an image have in common.
struct ScanPlan {
  std::uint32_t mcu_columns = 0;  // of the image
  std::uint32_t mcu_rows = 0;
  std::uint32_t restart_interval = 0;
  std::uint32_t first_row = 0;  // of the window, in MCUs
  std::uint32_t first_column = 0;
  std::uint32_t components = 0;
  std::uint32_t blocks_of_mcu = 0;
  std::uint32_t first_line[kMostComponents + 1] = {};  // of each component; then their sum
  BlockPlan blocks[kMostBlocksOfMcu];

  SHARD_EXACT constexpr std::uint32_t pieces_of_row() const noexcept {
    return (mcu_columns + kMcusPerPiece - 1) / kMcusPerPiece;
  }
};

// `window`: whole pieces (columns_of_pieces()). `dc`, `ac`: of each component, where its look-up begins.
// `skip`: where its PackedSkips do, or kNoSkip; null: they are not there.
SHARD_EXACT constexpr ScanPlan plan_scan(const Layout& layout, const McuWindow& window,
                                         const std::uint16_t* dc, const std::uint16_t* ac,
                                         const std::uint16_t* skip = nullptr) noexcept {
  ScanPlan plan;
  plan.mcu_columns = layout.mcu_columns;
  plan.mcu_rows = layout.mcu_rows;
  plan.restart_interval = layout.restart_interval;
  plan.first_row = window.rows.begin;
  plan.first_column = window.columns.begin;
  plan.components = layout.components;
  plan.blocks_of_mcu = layout.blocks_of_mcu;
  for (std::uint32_t c = 0; c < kMostComponents; ++c) {
    std::uint32_t lines = 0;
    if (c < layout.components)
      lines = window.rows.size() * layout.planes[c].v * window.columns.size() * layout.planes[c].h;
    plan.first_line[c + 1] = plan.first_line[c] + lines;
  }
  for (std::uint32_t i = 0; i < layout.blocks_of_mcu; ++i) {
    const McuBlock& block = layout.blocks[i];
    const Plane& plane = layout.planes[block.component];
    const std::uint32_t columns = window.columns.size() * plane.h;
    plan.blocks[i] = {plan.first_line[block.component] + block.y * columns + block.x,
                      plane.v * columns,
                      plane.h,
                      block.component,
                      dc[block.component],
                      ac[block.component],
                      skip != nullptr ? skip[block.component] : kNoSkip};
  }
  return plan;
}

// The bytes and the tables.
template <class Bytes>
struct Scan {
  Bytes bytes;
  std::uint32_t first = 0;  // byte of the file
  std::uint32_t end = 0;    // behind the last byte that may be read
  const CodeEntry* codes = nullptr;
  // For McuWalker, which needs them even if no block has any; and codes of DC differences in other memory, if
  // they are, too.
  const PackedSkip* skips = nullptr;
  const CodeEntry* dc_codes = nullptr;
};

// Decodes a piece a few codes at a time, so that the lanes of a GPU can do it together.
//
//   decoder.begin(piece, entry);
//   for (bool more = true; more; more = decoder.next()) {
//     while (!decoder.fetch() || !decoder.read_codes(put)) {}     the codes of a block
//     decoder.line() ...                                          which one it is
//   }
//   fault = decoder.finish(next entry)
//
// put(k of the zigzag, value) is called for the DC coefficient and each other one that is not 0, and with 0
// for some that are 0.
template <class Bytes>
class PieceDecoder {
 public:
  // Borrows `plan` and what `scan` points to.
  SHARD_EXACT PieceDecoder(const ScanPlan& plan, const Scan<Bytes>& scan)
      : plan_(plan), all_codes_(scan.codes), bits_(scan.bytes, scan.first, scan.end) {}

  // `piece` is one of the window's.
  SHARD_EXACT void begin(std::uint32_t piece, const EntryPoint& entry) {
    bits_.go_to(entry.position);
    row_ = piece / plan_.pieces_of_row();
    column_ = piece % plan_.pieces_of_row() * kMcusPerPiece;
    const std::uint32_t left = plan_.mcu_columns - column_;
    end_ = column_ + (left < kMcusPerPiece ? left : kMcusPerPiece);
    predictors_ = 0;
    SHARD_UNROLL
    for (std::uint32_t c = 0; c < kMostComponents; ++c)
      predictors_ |= std::uint64_t{entry.predictors[c]} << (16 * c);
    predictor_ = entry.predictors[0];
    block_ = 0;
    component_ = 0;
    fault_ = Fault::none;
    begin_block();
  }

  // Which line of coefficients this block is.
  SHARD_EXACT std::uint32_t line() const {
    const BlockPlan& block = plan_.blocks[block_];
    return block.line + (row_ - plan_.first_row) * block.row_lines +
           (column_ - plan_.first_column) * block.column_lines;
  }

  // Before each read_codes(), by all lanes of a warp together. False: it must wait.
  SHARD_EXACT bool fetch() { return bits_.fetch(); }
  // True: the block is complete, or faulty.
  template <class Put>
  SHARD_EXACT bool read_codes(const Put& put) {
    constexpr std::uint32_t kSteps = 4;
    bits_.fill();
    if (last_ < 0) read_dc(put);
    SHARD_ROLLED
    for (std::uint32_t fills = 1;; ++fills) {
      SHARD_UNROLL
      for (std::uint32_t i = 0; i < kSteps; ++i)
        if (last_ < kLast && bits_.holds_code()) step(put);
      if (last_ >= kLast || fills == kFillsOfRound) return last_ >= kLast;
      bits_.fill();
    }
  }

  // To the next block. False: the piece is complete, or faulty.
  SHARD_EXACT bool next() {
    if (last_ >= static_cast<std::int32_t>(kNoCode)) {
      fault_ = bits_.overrun() ? Fault::overrun : Fault::code;
      return false;
    }
    if (++block_ == plan_.blocks_of_mcu) {
      block_ = 0;
      if (!next_mcu()) return false;
    }
    begin_block();
    return true;
  }

  // After the last block. `next`: where the following piece begins; for the last one only its position
  // counts.
  SHARD_EXACT Fault finish(const EntryPoint& next) {
    if (fault_ != Fault::none) return fault_;
    if (bits_.position() != next.position) return Fault::end;
    if (row_ + 1 == plan_.mcu_rows && end_ == plan_.mcu_columns) return Fault::none;
    keep_predictor();
    bool same = true;
    SHARD_UNROLL
    for (std::uint32_t c = 0; c < kMostComponents; ++c)
      if (c < plan_.components)
        same = same && static_cast<std::uint16_t>(predictors_ >> (16 * c)) == next.predictors[c];
    return same ? Fault::none : Fault::end;
  }

 private:
  static constexpr std::int32_t kLast = kBlockValues - 1;

  SHARD_EXACT void begin_block() {
    const BlockPlan& block = plan_.blocks[block_];
    if (block.component != component_) {
      keep_predictor();
      component_ = block.component;
      predictor_ = static_cast<std::uint32_t>(predictors_ >> (16 * component_));
    }
    codes_ = all_codes_ + block.ac;
    last_ = -1;
  }
  SHARD_EXACT void keep_predictor() {
    const std::uint32_t shift = 16 * component_;
    predictors_ = (predictors_ & ~(std::uint64_t{0xFFFF} << shift)) | std::uint64_t{predictor_ & 0xFFFFU}
                                                                          << shift;
  }
  template <class Put>
  SHARD_EXACT void read_dc(const Put& put) {
    const std::uint32_t window = bits_.peek32();
    const CodeEntry entry = code_at(all_codes_ + plan_.blocks[block_].dc, window);
    if (entry >> 24 == kNoCode) {
      last_ = kNoCode;
      return;
    }
    bits_.skip_code(entry);
    predictor_ += static_cast<std::uint32_t>(value_of(window, entry));
    put(0, static_cast<std::int16_t>(static_cast<std::uint16_t>(predictor_)));
    last_ = 0;
  }
  template <class Put>
  SHARD_EXACT void step(const Put& put) {
    const std::uint32_t window = bits_.peek32();
    const CodeEntry entry = code_at(codes_, window);
    bits_.skip_code(entry);
    last_ += static_cast<std::int32_t>(entry >> 24);
    // Where a code has no value, the last coefficient that it leads over is 0 anyway.
    put(static_cast<std::uint32_t>(last_ < kLast ? last_ : kLast),
        static_cast<std::int16_t>(value_of(window, entry)));
  }
  SHARD_EXACT bool next_mcu() {
    if (bits_.overrun()) {
      fault_ = Fault::overrun;
      return false;
    }
    ++column_;
    if (plan_.restart_interval != 0) restart_after(row_ * plan_.mcu_columns + column_);
    return column_ < end_ && fault_ == Fault::none;
  }
  SHARD_EXACT void restart_after(std::uint32_t mcus) {
    const bool last = row_ + 1 == plan_.mcu_rows && column_ == plan_.mcu_columns;
    if (last || mcus % plan_.restart_interval != 0) return;
    predictors_ = 0;
    predictor_ = 0;
    if (!bits_.restart((mcus / plan_.restart_interval - 1) % 8)) fault_ = Fault::restart;
  }

  const ScanPlan& plan_;
  const CodeEntry* all_codes_;
  const CodeEntry* codes_ = nullptr;  // of the block's AC coefficients
  BitReader<Bytes> bits_;
  std::uint64_t predictors_ = 0;  // 16 bits of each component; that of the present one is in predictor_
  std::uint32_t predictor_ = 0;   // the lower 16 bits count
  std::uint32_t row_ = 0;         // of MCUs
  std::uint32_t column_ = 0;
  std::uint32_t end_ = 0;    // of the piece's columns
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t component_ = 0;
  std::int32_t last_ = -1;  // coefficient that was decoded; kNoCode and more: there was no code
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
