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

//   do {
//     while (!walker.step()) {}             the codes of a block
//   } while (!walker.next_block());         the blocks of an MCU
template <class Bytes>
class McuWalker {
 public:
  using Bits = BitReader<Bytes, true>;

  // Borrows `plan` and what `scan` points to.
  SHARD_EXACT McuWalker(const ScanPlan& plan, const Scan<Bytes>& scan)
      : plan_(plan), look_ups_(scan.look_ups), bits_(scan.bytes, scan.first, scan.end, 0) {
    start_mcu();
  }
  // The first block of an MCU begins at `position`. Sums are 0.
  SHARD_EXACT void go_to(std::uint32_t position) {
    bits_.go_to(position);
    fault_ = Fault::none;
    sums_ = 0;
    start_mcu();
  }

  // Reads one code. True: the block is complete, or faulty.
  SHARD_EXACT bool step() {
    bits_.refill();
    const std::uint32_t window = bits_.peek32();
    const std::uint32_t entry = look_up(table_, window >> 16);
    if (entry == 0) {
      fault_ = bits_.overrun() ? Fault::overrun : Fault::code;
      return true;
    }
    // A code of up to 16 bits, and its value of up to 15.
    const std::uint32_t length = entry >> 8;
    const std::uint32_t size = entry & 15U;
    const std::uint32_t run = (entry >> 4) & 15U;
    bits_.skip(length + size);
    if (k_ == 0) {
      const BlockPlan& block = plan_.blocks[block_];
      if (size != 0) {
        const std::int32_t value = extend((window << length) >> (32 - size), size);
        sums_ = plus(sums_, Sums{static_cast<std::uint16_t>(value)} << (16U * block.component));
      }
      table_ = look_ups_ + block.ac;
      k_ = 1;
      return false;
    }
    k_ = size == 0 && run != 15 ? kBlockValues : k_ + run + 1;
    return k_ >= kBlockValues;
  }

  // After a complete block. True: the MCU is complete, or faulty.
  SHARD_EXACT bool next_block() {
    if (fault_ != Fault::none) return true;
    if (++block_ == plan_.blocks_of_mcu) {
      start_mcu();
      if (bits_.overrun()) fault_ = Fault::overrun;
      return true;
    }
    choose_block();
    return false;
  }

  SHARD_EXACT Fault fault() const { return fault_; }
  SHARD_EXACT Sums sums() const { return sums_; }
  SHARD_EXACT void set_sums(Sums sums) { sums_ = sums; }
  SHARD_EXACT Bits& bits() { return bits_; }

 private:
  SHARD_EXACT void start_mcu() {
    block_ = 0;
    choose_block();
  }
  SHARD_EXACT void choose_block() {
    table_ = look_ups_ + plan_.blocks[block_].dc;
    k_ = 0;
  }

  const ScanPlan& plan_;
  const std::uint16_t* look_ups_;
  Bits bits_;
  Sums sums_ = 0;
  const std::uint16_t* table_ = nullptr;
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t k_ = 0;      // of the coefficient that comes next
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
