// Reads the codes of MCUs without their values but DC differences, from any position on. Shared by host and
// device; takes bounded time and stays inside its buffers whatever the bytes are.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/bits.hpp"
#include "jpeg/entropy.hpp"
#include "jpeg/huffman.hpp"
#include "jpeg/layout.hpp"
#include "jpeg/mcu_start.hpp"

namespace shard::jpeg {

//   do {
//     while (!walker.step()) {}             the codes of a block
//   } while (!walker.next_block());         the blocks of an MCU
template <class Bytes>
class McuWalker {
 public:
  // Borrows `layout` and what `scan` points to.
  SHARD_EXACT McuWalker(const Layout& layout, const Scan<Bytes>& scan)
      : layout_(layout),
        dc_look_ups_(scan.look_ups),
        ac_look_ups_(scan.look_ups + scan.dc_tables * kLookUpEntries),
        bits_(scan.bytes, scan.first, scan.end, 0) {
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
    const std::uint32_t entry = look_up(k_ == 0 ? dc_ : ac_, bits_.peek16());
    if (entry == 0) {
      fault_ = bits_.overrun() ? Fault::overrun : Fault::code;
      return true;
    }
    const std::uint32_t size = entry & 15U;
    const std::uint32_t run = (entry >> 4) & 15U;
    bits_.skip(entry >> 8);
    if (k_ == 0) {
      if (size != 0) {
        const auto value = static_cast<std::uint16_t>(extend(bits_.take(size), size));
        sums_ = plus(sums_, Sums{value} << (16 * component_));
      }
      k_ = 1;
      return false;
    }
    bits_.skip(size);
    k_ = size == 0 && run != 15 ? kBlockValues : k_ + run + 1;
    return k_ >= kBlockValues;
  }

  // After a complete block. True: the MCU is complete, or faulty.
  SHARD_EXACT bool next_block() {
    if (fault_ != Fault::none) return true;
    if (++block_ == layout_.blocks_of_mcu) {
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
  SHARD_EXACT BitReader<Bytes>& bits() { return bits_; }

 private:
  SHARD_EXACT void start_mcu() {
    block_ = 0;
    choose_block();
  }
  SHARD_EXACT void choose_block() {
    component_ = layout_.blocks[block_].component;
    const Plane& plane = layout_.planes[component_];
    dc_ = dc_look_ups_ + plane.dc * kLookUpEntries;
    ac_ = ac_look_ups_ + plane.ac * kLookUpEntries;
    k_ = 0;
  }

  const Layout& layout_;
  const std::uint16_t* dc_look_ups_;
  const std::uint16_t* ac_look_ups_;
  BitReader<Bytes> bits_;
  Sums sums_ = 0;
  const std::uint16_t* dc_ = nullptr;
  const std::uint16_t* ac_ = nullptr;
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t component_ = 0;
  std::uint32_t k_ = 0;  // of the coefficient that comes next
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
