// The bits of a JPEG's entropy-coded data, read from the bytes of the file as they are: a zero behind 0xFF is
// stuffing, anything else behind it a marker, where the data end. After the end come zeros, which are
// counted. Never reads outside of [first, end).
//
// `Bytes` is a source: byte(i) is byte i of the file; word(i) are bytes i to i + 3, the first one highest,
// where i is what start() or reach() was last told. So a source can fetch ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/host_device.hpp"

namespace shard::jpeg {

// The bytes of a file in memory.
class FileBytes {
 public:
  explicit FileBytes(std::span<const std::byte> file) noexcept : data_(file.data()) {}
  std::uint32_t byte(std::uint32_t i) const noexcept { return std::to_integer<std::uint32_t>(data_[i]); }
  std::uint32_t word(std::uint32_t i) const noexcept {
    return byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 | byte(i + 3);
  }
  void start(std::uint32_t) noexcept {}
  void reach(std::uint32_t) noexcept {}

 private:
  const std::byte* data_;
};

// Whether one of the four bytes is 0xFF.
SHARD_EXACT constexpr bool has_ff(std::uint32_t word) noexcept {
  return (word & ((word & 0x7F7F7F7FU) + 0x01010101U) & 0x80808080U) != 0;
}

inline constexpr std::uint32_t kNoRestart = 8;

// kAsksOften: position() is called often, so it costs a register to make it quick.
template <class Bytes, bool kAsksOften = false>
class BitReader {
 public:
  // Positions are in bits of the file's bytes from `first`, stuffing included.
  SHARD_EXACT BitReader(const Bytes& bytes, std::uint32_t first, std::uint32_t end, std::uint32_t position)
      : bytes_(bytes), first_(first), end_(end) {
    go_to(position);
  }

  SHARD_EXACT void go_to(std::uint32_t position) {
    const std::uint32_t size = end_ - first_;
    at_ = first_ + (position / 8 < size ? position / 8 : size);
    if (kAsksOften) stuffed_ = at_;
    window_ = 0;
    count_ = added_ = 0;
    if (position % 8 != 0) {
      append_byte();
      skip(position % 8);
    }
    bytes_.start(at_);
  }
  // At least 32 bits can be taken after it.
  SHARD_EXACT void refill() {
    if (count_ > 32) return;
    if (end_ - at_ >= 4) {
      const std::uint32_t word = bytes_.word(at_);
      if (!has_ff(word)) {
        window_ |= static_cast<std::uint64_t>(word) << (32 - count_);
        count_ += 32;
        at_ += 4;
        bytes_.reach(at_);
        return;
      }
    }
    while (count_ <= 56) append_byte();
    bytes_.reach(at_);
  }
  // The next 16 bits; they are there after refill().
  SHARD_EXACT std::uint32_t peek16() const { return static_cast<std::uint32_t>(window_ >> 48); }
  SHARD_EXACT void skip(std::uint32_t bits) {
    window_ <<= bits;
    count_ -= bits;
  }
  // 1 to 16 bits.
  SHARD_EXACT std::uint32_t take(std::uint32_t bits) {
    const auto value = static_cast<std::uint32_t>(window_ >> (64 - bits));
    skip(bits);
    return value;
  }
  // More bits were taken than there are.
  SHARD_EXACT bool overrun() const { return count_ < added_; }

  // Of the next bit. Whole bytes go back one by one: a zero behind 0xFF is stuffing here, too.
  SHARD_EXACT std::uint32_t position() const {
    const std::uint32_t unread = overrun() ? 0 : count_ - added_;
    const std::uint32_t whole = (unread + 7) / 8;
    std::uint32_t at = at_;
    if (kAsksOften && at_ - stuffed_ >= whole)
      at -= whole;
    else
      for (std::uint32_t bytes = whole; bytes > 0 && at > first_; --bytes) at = before(at);
    return (at - first_) * 8 + (8 - unread % 8) % 8;
  }

  // Goes on behind the restart marker `number`, 0 to 7. False: the data do not end right here with this
  // marker.
  SHARD_EXACT bool restart(std::uint32_t number) {
    if (is_off_end()) return false;
    const Restart next = next_restart();
    if (next.number != number) return false;
    go_to((next.behind - first_) * 8);
    return true;
  }
  // The same with whichever restart marker it is: its number. kNoRestart: none stands right here.
  SHARD_EXACT std::uint32_t restart() { return is_off_end() ? kNoRestart : restart_behind_data(); }
  // The same, however many bits were taken behind the end: the data end with this marker.
  SHARD_EXACT std::uint32_t restart_behind_data() {
    const Restart next = next_restart();
    if (next.number != kNoRestart) go_to((next.behind - first_) * 8);
    return next.number;
  }

 private:
  struct Restart {
    std::uint32_t number;  // of the marker that comes next, or kNoRestart
    std::uint32_t behind;  // the byte behind it
  };
  // A byte before the end is left, or bits behind it were taken.
  SHARD_EXACT bool is_off_end() const { return overrun() || count_ - added_ >= 8; }
  SHARD_EXACT Restart next_restart() const {
    std::uint32_t at = at_;
    if (end_ - at < 2 || bytes_.byte(at) != 0xFF) return {kNoRestart, 0};
    while (end_ - at >= 2 && bytes_.byte(at + 1) == 0xFF) ++at;  // fill bytes
    if (end_ - at < 2) return {kNoRestart, 0};
    const std::uint32_t marker = bytes_.byte(at + 1);
    if (marker < 0xD0 || marker > 0xD7) return {kNoRestart, 0};
    return {marker - 0xD0, at + 2};
  }
  SHARD_EXACT void append_byte() {
    std::uint32_t byte = 0;
    if (at_ >= end_) {
      added_ += 8;
    } else {
      byte = bytes_.byte(at_);
      if (byte != 0xFF) {
        ++at_;
      } else if (end_ - at_ >= 2 && bytes_.byte(at_ + 1) == 0) {
        at_ += 2;
        if (kAsksOften) stuffed_ = at_;
      } else {
        byte = 0;
        added_ += 8;
      }
    }
    window_ |= static_cast<std::uint64_t>(byte) << (56 - count_);
    count_ += 8;
  }
  SHARD_EXACT std::uint32_t before(std::uint32_t at) const {
    const bool stuffing = at - first_ >= 2 && bytes_.byte(at - 1) == 0 && bytes_.byte(at - 2) == 0xFF;
    return stuffing ? at - 2 : at - 1;
  }

  Bytes bytes_;
  std::uint32_t first_;
  std::uint32_t end_;
  std::uint32_t at_ = 0;       // the next byte to load
  std::uint32_t stuffed_ = 0;  // kAsksOften: behind the last stuffing that was loaded, or where it began
  std::uint64_t window_ = 0;   // loaded bits, the next one highest
  std::uint32_t count_ = 0;    // of them
  std::uint32_t added_ = 0;    // zeros behind the end that were loaded
};

}  // namespace shard::jpeg
