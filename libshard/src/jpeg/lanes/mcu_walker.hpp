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
//     while (!walker.read_codes()) {}       the codes of a block
//     if (walker.next_block()) break;       the blocks of an MCU
//   }
template <class Bytes>
class McuWalker {
 public:
  using Bits = BitReader<Bytes>;

  // Borrows `plan` and what `scan` points to.
  SHARD_EXACT McuWalker(const ScanPlan& plan, const Scan<Bytes>& scan)
      : plan_(plan), all_codes_(scan.codes), bits_(scan.bytes, scan.first, scan.end) {}
  // An MCU starts at `position`. Sums are 0.
  SHARD_EXACT void go_to(std::uint32_t position) {
    bits_.go_to(position);
    fault_ = Fault::none;
    sums_ = 0;
  }

  SHARD_EXACT void begin_mcu() {
    block_ = 0;
    read_dc();
  }
  // Reads a few codes. True: the block is complete, or faulty.
  SHARD_EXACT bool read_codes() {
    constexpr std::uint32_t kAtOnce = 4;  // at most 8: what fetch() brings
    bits_.fetch();
    bits_.fill();
    bool complete = false;
    for (std::uint32_t i = 0; i < kAtOnce && !complete; ++i) complete = step();
    return complete;
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
    read_dc();
    return false;
  }

  SHARD_EXACT Fault fault() const { return fault_; }
  SHARD_EXACT Sums sums() const { return sums_; }
  SHARD_EXACT void set_sums(Sums sums) { sums_ = sums; }
  SHARD_EXACT Bits& bits() { return bits_; }

 private:
  SHARD_EXACT bool step() {
    bits_.refill();
    const CodeEntry entry = code_at(codes_, bits_.peek32());
    bits_.skip_code(entry);
    k_ += entry >> 24;
    return k_ >= kBlockValues;
  }
  SHARD_EXACT void read_dc() {
    const BlockPlan& block = plan_.blocks[block_];
    codes_ = all_codes_ + block.ac;
    bits_.fetch();
    bits_.refill();
    const std::uint32_t window = bits_.peek32();
    const CodeEntry entry = code_at(all_codes_ + block.dc, window);
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
  const CodeEntry* all_codes_;
  const CodeEntry* codes_ = nullptr;  // of the block's AC coefficients
  Bits bits_;
  Sums sums_ = 0;
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t k_ = 0;      // of the coefficient that comes next; kNoCode and more: there was no code
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
