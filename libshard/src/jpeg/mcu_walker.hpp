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

// The codes of one block of an MCU.
struct BlockCodes {
  std::uint16_t dc = 0;  // where its look-ups begin
  std::uint16_t ac = 0;
  std::uint32_t shift = 0;  // of its component in Sums
};
struct McuCodes {
  BlockCodes blocks[kMostBlocksOfMcu];
  std::uint32_t count = 0;
};

// `dc_tables`: how many look-ups stand before those of AC.
SHARD_EXACT constexpr void make_codes(const Layout& layout, std::uint32_t dc_tables,
                                      McuCodes& codes) noexcept {
  codes.count = layout.blocks_of_mcu;
  for (std::uint32_t i = 0; i < codes.count; ++i) {
    const std::uint32_t component = layout.blocks[i].component;
    const Plane& plane = layout.planes[component];
    BlockCodes& block = codes.blocks[i];
    block.dc = static_cast<std::uint16_t>(plane.dc * kLookUpEntries);
    block.ac = static_cast<std::uint16_t>((dc_tables + plane.ac) * kLookUpEntries);
    block.shift = 16 * component;
  }
}

//   do {
//     while (!walker.step()) {}             the codes of a block
//   } while (!walker.next_block());         the blocks of an MCU
template <class Bytes>
class McuWalker {
 public:
  using Bits = BitReader<Bytes, true>;

  // Borrows `codes` and what `scan` points to.
  SHARD_EXACT McuWalker(const McuCodes& codes, const Scan<Bytes>& scan)
      : codes_(codes), look_ups_(scan.look_ups), bits_(scan.bytes, scan.first, scan.end, 0) {
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
    const std::uint32_t entry =
        look_up(look_ups_ + (k_ == 0 ? block_codes_.dc : block_codes_.ac), bits_.peek16());
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
        sums_ = plus(sums_, Sums{value} << block_codes_.shift);
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
    if (++block_ == codes_.count) {
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
    block_codes_ = codes_.blocks[block_];
    k_ = 0;
  }

  const McuCodes& codes_;
  const std::uint16_t* look_ups_;
  Bits bits_;
  Sums sums_ = 0;
  BlockCodes block_codes_;
  std::uint32_t block_ = 0;  // of the MCU
  std::uint32_t k_ = 0;      // of the coefficient that comes next
  Fault fault_ = Fault::none;
};

}  // namespace shard::jpeg
