#include "image/codecs/jpeg_scan.hpp"

#include <algorithm>

namespace shard::image {
namespace {

// Fewer blocks than this come out of any few bytes by chance.
constexpr int kTellingBlocks = 4;

// The bits of image data up to a marker; a zero byte behind 0xFF is stuffing.
class BitWalker {
 public:
  explicit BitWalker(std::span<const std::byte> data) : data_(data) {}

  // -1: the data of this interval have ended.
  int bit() noexcept {
    if (left_ == 0 && !load()) return -1;
    --left_;
    return (byte_ >> left_) & 1;
  }
  bool skip(unsigned bits) noexcept {
    for (; bits > 0; --bits)
      if (bit() < 0) return false;
    return true;
  }
  // Whether the bits that are left of the byte begun are all 1; drops them.
  bool padding() noexcept {
    const bool ones = (byte_ & ((1U << left_) - 1U)) == (1U << left_) - 1U;
    left_ = 0;
    return ones;
  }
  bool at_marker() noexcept {
    BitWalker ahead = *this;
    return ahead.left_ == 0 && !ahead.load();
  }
  // Behind the next marker. False: there is none.
  bool next_interval() noexcept {
    left_ = 0;
    while (load()) left_ = 0;
    while (at_ < data_.size() && data_[at_] == std::byte{0xFF}) ++at_;
    if (at_ >= data_.size()) return false;
    ++at_;
    return true;
  }

 private:
  bool load() noexcept {
    if (at_ >= data_.size()) return false;
    if (data_[at_] == std::byte{0xFF}) {
      if (at_ + 1 >= data_.size() || data_[at_ + 1] != std::byte{0}) return false;
      byte_ = 0xFF;
      at_ += 2;
    } else {
      byte_ = std::to_integer<unsigned>(data_[at_++]);
    }
    left_ = 8;
    return true;
  }

  std::span<const std::byte> data_;
  std::size_t at_ = 0;
  unsigned byte_ = 0;
  unsigned left_ = 0;  // bits of byte_ that were not read
};

// -1: no such code, or the data have ended.
int decode_symbol(const HuffmanCodes& codes, BitWalker& bits) noexcept {
  int code = 0;
  int first = 0;
  int index = 0;
  for (std::size_t length = 1; length <= 16; ++length) {
    const int next = bits.bit();
    if (next < 0) return -1;
    code |= next;
    const int count = codes.counts[length];
    if (code - first < count)
      return codes.symbols[static_cast<std::size_t>(std::min(index + code - first, 255))];
    index += count;
    first = (first + count) << 1;
    code <<= 1;
  }
  return -1;
}

bool skip_block(const SequentialScan::Block& block, BitWalker& bits) noexcept {
  const int size = decode_symbol(block.dc, bits);
  if (size < 0 || !bits.skip(static_cast<unsigned>(size & 15))) return false;
  for (int k = 1; k < 64; ++k) {
    const int symbol = decode_symbol(block.ac, bits);
    if (symbol < 0) return false;
    if ((symbol & 15) != 0) {
      k += symbol >> 4;
      if (!bits.skip(static_cast<unsigned>(symbol & 15))) return false;
    } else if (symbol >> 4 == 15) {
      k += 15;
    } else {
      break;
    }
  }
  return true;
}

// Whether what follows reads as whole blocks up to the marker, whichever of an MCU's blocks comes first.
bool reads_as_blocks(const SequentialScan& scan, const BitWalker& from) noexcept {
  for (std::size_t first = 0; first < scan.blocks.size(); ++first) {
    BitWalker bits = from;
    int blocks = 0;
    for (std::size_t i = first;; i = (i + 1) % scan.blocks.size(), ++blocks) {
      BitWalker rest = bits;
      if (rest.padding() && rest.at_marker()) break;
      if (!skip_block(scan.blocks[i], bits)) {
        blocks = 0;
        break;
      }
    }
    if (blocks >= kTellingBlocks) return true;
  }
  return false;
}

}  // namespace

bool ends_where_encoders_end(const SequentialScan& scan, std::span<const std::byte> data) {
  if (scan.blocks.empty()) return false;
  BitWalker bits(data);
  std::uint64_t left_of_interval = scan.restart_interval;
  for (std::uint64_t mcu = 0; mcu < scan.mcus; ++mcu) {
    for (const SequentialScan::Block& block : scan.blocks)
      if (!skip_block(block, bits)) return false;
    const bool last = mcu + 1 == scan.mcus;
    if (!last && (scan.restart_interval == 0 || --left_of_interval > 0)) continue;
    left_of_interval = scan.restart_interval;
    const BitWalker behind = bits;
    if (!bits.padding()) return false;
    if (!bits.at_marker() && reads_as_blocks(scan, behind)) return false;
    if (!last && !bits.next_interval()) return false;
  }
  return true;
}

}  // namespace shard::image
