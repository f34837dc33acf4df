// Reads the codes of MCUs without their values but DC differences, from any position on. Shared by host and
// device; takes bounded time and stays inside its buffers whatever the bytes are.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/bits.hpp"
#include "jpeg/entropy.hpp"
#include "jpeg/huffman.hpp"
#include "jpeg/lanes/mcu_start.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

//   for (walker.begin_mcu();; ) {
//     while (!walker.fetch() || !walker.read_codes()) {}   the codes of a block
//     if (walker.next_block()) break;                      the blocks of an MCU
//   }
template <class Bytes>
class McuWalker {
 public:
  using Bits = BitReader<Bytes>;

  // Borrows `plan` and what `scan` points to.
  SHARD_EXACT McuWalker(const ScanPlan& plan, const Scan<Bytes>& scan)
      : plan_(plan),
        codes_(scan.codes),
        dc_codes_(scan.dc_codes != nullptr ? scan.dc_codes : scan.codes),
        skips_(scan.skips),
        bits_(scan.bytes, scan.first, scan.end) {}
  // An MCU starts at `position`. Sums are 0.
  SHARD_EXACT void go_to(std::uint32_t position) {
    bits_.go_to(position);
    fault_ = Fault::none;
    sums_ = 0;
  }

  SHARD_EXACT void begin_mcu() {
    block_ = 0;
    begin_block();
  }
  // Before each read_codes(). False: it must wait.
  SHARD_EXACT bool fetch() { return bits_.fetch(); }
  // Reads a few codes. True: the block is complete, or faulty.
  SHARD_EXACT bool read_codes() {
    bits_.fill();
    if (k_ == 0) read_dc();
    SHARD_ROLLED
    for (std::uint32_t fills = 1;; ++fills) {
      SHARD_UNROLL
      for (std::uint32_t i = 0; i < kSteps; ++i)
        if (k_ < kBlockValues && bits_.holds_code()) step();
      if (k_ >= kBlockValues || fills == kFillsOfRound) return k_ >= kBlockValues;
      bits_.fill();
    }
  }
  // After a complete block. True: the MCU is complete, or faulty.
  SHARD_EXACT bool next_block() {
    if (k_ >= kNoCode) {
      fault_ = bits_.overrun() ? Fault::overrun : Fault::code;
      return true;
    }
    if (++block_ == plan_.blocks_of_mcu) {
      if (bits_.overrun()) fault_ = Fault::overrun;
      return true;
    }
    begin_block();
    return false;
  }

  SHARD_EXACT Fault fault() const { return fault_; }
  SHARD_EXACT Sums sums() const { return sums_; }
  SHARD_EXACT void set_sums(Sums sums) { sums_ = sums; }
  SHARD_EXACT Bits& bits() { return bits_; }

 private:
  // After each fill: of about 11 bits.
  static constexpr std::uint32_t kSteps = 3;

  SHARD_EXACT void begin_block() {
    const BlockPlan& block = plan_.blocks[block_];
    ac_ = block.ac;
    const bool skips = block.skip != kNoSkip;
    skip_ = skips ? block.skip : 0;
    most_ = skips ? kBlockValues : 0;
    k_ = 0;
  }
  SHARD_EXACT void step() {
    const std::uint32_t window = bits_.peek32();
    const PackedSkip skip = skips_[skip_ + (window >> (32 - kPackedSkipBits))];
    if (k_ + needs_of(skip) <= most_) {
      bits_.skip(skip & 31U);
      k_ += advance_of(skip);
      return;
    }
    const CodeEntry entry = code_at(codes_ + ac_, window);
    bits_.skip_code(entry);
    k_ += entry >> 24;
  }
  SHARD_EXACT void read_dc() {
    const BlockPlan& block = plan_.blocks[block_];
    const std::uint32_t window = bits_.peek32();
    const CodeEntry entry = code_at(dc_codes_ + block.dc, window);
    k_ = 1;
    if (entry >> 24 == kNoCode) {
      k_ = kNoCode;  // the next step ends the block
      return;
    }
    bits_.skip_code(entry);
    const auto value = static_cast<std::uint16_t>(value_of(window, entry));
    sums_ = plus(sums_, Sums{value} << (16U * block.component));
  }

  const ScanPlan& plan_;
  const CodeEntry* codes_;
  const CodeEntry* dc_codes_;
  const PackedSkip* skips_;
  Bits bits_;
  Sums sums_ = 0;
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t ac_ = 0;     // of the block: where its codes begin
  std::uint32_t skip_ = 0;   // and its skips
  std::uint32_t most_ = 0;   // coefficients that these may lead to
  std::uint32_t k_ = 0;      // of the coefficient that comes next; kNoCode and more: there was no code
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
