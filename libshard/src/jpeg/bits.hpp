// The bits of a JPEG's entropy-coded data, read from the bytes of the file as they are: a zero behind 0xFF is
// stuffing, anything else behind it a marker, where the data end. After the end come zeros, which are
// counted. Never reads outside of [first, end).
//
// `Bytes` is a source of a file's bytes, which may fetch ahead:
//
//   byte(i)      byte i, wherever
//   start(at)    begin to fetch at `at`, and wait for the 32 bytes that come there
//   reach(at)    fetch on from `at`, before each round of codes. True: the kBytesOfRound from `at` on are
//                there
//   need(at, n)  wait until the n bytes from `at` on are, at most 32
//   seek(at)     the next read is read(at)
//   read(at)     bytes at to at + 3, the first one highest. Then come read(at + 4), ...
//   word(at)     the same anywhere from the last reach() or read() on
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
  std::uint32_t read(std::uint32_t at) const noexcept { return word(at); }
  void start(std::uint32_t) noexcept {}
  bool reach(std::uint32_t) noexcept { return true; }
  void need(std::uint32_t, std::uint32_t) noexcept {}
  void seek(std::uint32_t) noexcept {}

 private:
  const std::byte* data_;
};

// The highest bit of each of the four bytes that is 0xFF.
SHARD_EXACT constexpr std::uint32_t ff_bits(std::uint32_t word) noexcept {
  return word & ((word & 0x7F7F7F7FU) + 0x01010101U) & 0x80808080U;
}

SHARD_EXACT inline std::uint32_t leading_zeros(std::uint32_t bits) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__clz(static_cast<int>(bits)));
#else
  return static_cast<std::uint32_t>(__builtin_clz(bits));
#endif
}

SHARD_EXACT inline std::uint32_t ones_of(std::uint32_t bits) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(static_cast<int>(bits)));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
}

// The upper 32 of the 64 bits `high`, `low` behind the first `bits` % 32.
SHARD_EXACT inline std::uint32_t funnel(std::uint32_t high, std::uint32_t low, std::uint32_t bits) noexcept {
#if defined(__CUDA_ARCH__)
  return __funnelshift_l(low, high, bits);
#else
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32 | low) << (bits % 32)) >> 32);
#endif
}

inline constexpr std::uint32_t kNoRestart = 8;
// Calls of BitReader::fill() between two of fetch(): each takes a word, and the next 8 bytes are looked at.
// Stuffing takes more, and asks for it by itself.
inline constexpr std::uint32_t kFillsOfRound = 2;
inline constexpr std::uint32_t kBytesOfRound = 4 * kFillsOfRound + 8;

template <class Bytes>
class BitReader {
 public:
  // Before anything is read it must go_to() a position. Positions are in bits of the file's bytes from
  // `first`, stuffing included.
  SHARD_EXACT BitReader(const Bytes& bytes, std::uint32_t first, std::uint32_t end)
      : bytes_(bytes), first_(first), end_(end), near_end_(end < 7 ? 0 : end - 7) {}

  SHARD_EXACT void go_to(std::uint32_t position) {
    const std::uint32_t size = end_ - first_;
    at_ = first_ + (position / 8 < size ? position / 8 : size);
    bytes_.start(at_);
    begin(position % 8);
  }

  // To be called before each round of up to kFillsOfRound fill(). False: the bytes are not there yet. The
  // lanes of a warp do it together.
  SHARD_EXACT bool fetch() { return bytes_.reach(at_); }
  // Loads a word where there is room for it. Then holds_code(), if it did before the last 31 bits were taken.
  SHARD_EXACT void fill() {
    if (used_ < 32) return;
    words_[0] = words_[1];
    words_[1] = words_[2];
    words_[2] = next_word();
    used_ -= 32;
  }
  // Whether there are bits for a code with its value: 33.
  SHARD_EXACT bool holds_code() const { return used_ < 64; }
  // The next 32 bits, where it holds_code().
  SHARD_EXACT std::uint32_t peek32() const {
    return used_ < 32 ? funnel(words_[0], words_[1], used_) : funnel(words_[1], words_[2], used_);
  }
  SHARD_EXACT std::uint32_t peek16() const { return peek32() >> 16; }
  SHARD_EXACT void skip(std::uint32_t bits) { used_ += bits; }
  // What byte 1 of `entry` says.
  SHARD_EXACT void skip_code(std::uint32_t entry) {
#if defined(__CUDA_ARCH__)
    used_ = __dp4a(entry, 0x100U, used_);
#else
    used_ += entry >> 8 & 0xFFU;
#endif
  }
  // More bits were taken than there are.
  SHARD_EXACT bool overrun() const { return kWindowBits - used_ < added_; }

  // Of the next bit.
  SHARD_EXACT std::uint32_t position() const {
    const std::uint32_t unread = overrun() ? 0 : kWindowBits - used_ - added_;
    const std::uint32_t whole = (unread + 7) / 8;  // with that of the next bit
    std::uint32_t stuffing = stuffing_ & ((1U << whole) - 1);
    // Seldom: bytes behind the end are in the window.
    if (added_ != 0) stuffing = whole == 0 ? 0 : stuffing_ >> (added_ / 8) & ((1U << whole) - 1);
    const std::uint32_t at = at_ - whole - ones_of(stuffing);
    return (at - first_) * 8 + (8 - unread % 8) % 8;
  }

  // Goes on behind the restart marker `number`, 0 to 7. False: the data do not end right here with this
  // marker.
  SHARD_EXACT bool restart(std::uint32_t number) {
    if (is_off_end()) return false;
    const Restart next = next_restart();
    if (next.number != number) return false;
    go_on_at(next.behind);
    return true;
  }
  // The same with whichever restart marker it is: its number. kNoRestart: none stands right here.
  SHARD_EXACT std::uint32_t restart() { return is_off_end() ? kNoRestart : restart_behind_data(); }
  // The same, however many bits were taken behind the end: the data end with this marker.
  SHARD_EXACT std::uint32_t restart_behind_data() {
    const Restart next = next_restart();
    if (next.number != kNoRestart) go_on_at(next.behind);
    return next.number;
  }

 private:
  static constexpr std::uint32_t kWindowBits = 96;
  static constexpr std::uint32_t kBytesOfWindow = kWindowBits / 8 + 8;

  SHARD_EXACT void begin(std::uint32_t bit) {
    stuffing_ = 0;
    added_ = 0;
    bytes_.seek(at_);
    used_ = kWindowBits + bit;
    SHARD_ROLLED
    for (std::uint32_t word = 0; word < kWindowBits / 32; ++word) fill();
  }
  // Not before what was read.
  SHARD_EXACT void go_on_at(std::uint32_t byte) {
    at_ = byte;
    bytes_.need(at_, kBytesOfWindow);
    begin(0);
  }

  struct Restart {
    std::uint32_t number;  // of the marker that comes next, or kNoRestart
    std::uint32_t behind;  // the byte behind it
  };
  // A byte before the end is left, or bits behind it were taken.
  SHARD_EXACT bool is_off_end() const { return overrun() || kWindowBits - used_ - added_ >= 8; }
  SHARD_EXACT Restart next_restart() const {
    std::uint32_t at = at_;
    if (end_ - at < 2 || bytes_.byte(at) != 0xFF) return {kNoRestart, 0};
    while (end_ - at >= 2 && bytes_.byte(at + 1) == 0xFF) ++at;  // fill bytes
    if (end_ - at < 2) return {kNoRestart, 0};
    const std::uint32_t marker = bytes_.byte(at + 1);
    if (marker < 0xD0 || marker > 0xD7) return {kNoRestart, 0};
    return {marker - 0xD0, at + 2};
  }
  SHARD_EXACT std::uint32_t next_word() {
    const bool near_end = at_ >= near_end_;
    const std::uint32_t word = near_end ? ~0U : bytes_.read(at_);
    const std::uint32_t ff = ff_bits(word);
    stuffing_ <<= 4;
    if (ff != 0) return near_end ? last_word() : without_stuffing(word, ff);
    at_ += 4;
    return word;
  }
  SHARD_EXACT std::uint32_t last_word() {
    std::uint32_t word = 0;
    SHARD_ROLLED
    for (std::uint32_t left = 4; left > 0; --left) word = word << 8 | next_byte(left - 1);
    bytes_.need(at_, kBytesOfRound);
    bytes_.seek(at_);
    return word;
  }
  // `word`: the next four bytes, with 0xFF where `ff` has bits.
  SHARD_EXACT std::uint32_t without_stuffing(std::uint32_t word, std::uint32_t ff) {
    std::uint32_t following = bytes_.word(at_ + 4);
    at_ += 4;
    while (ff != 0) {
      const std::uint32_t kept = leading_zeros(ff) + 8;  // bits up to the 0xFF
      const std::uint32_t rest = kept == 32 ? 0 : 0xFFFFFFFFU >> kept;
      const std::uint32_t next = word << 8 | following >> 24;  // one byte further
      const std::uint32_t behind = kept == 32 ? following >> 24 : word >> (24 - kept) & 0xFFU;
      if (behind != 0) {  // a marker: zeros from here on
        at_ -= (32 - kept + 8) / 8;
        added_ += 32 - kept + 8;
        word &= ~(0xFFFFFFFFU >> (kept - 8));
        break;
      }
      word = (word & ~rest) | (next & rest);
      following <<= 8;
      stuffing_ |= 1U << (32 - kept) / 8;
      ++at_;
      ff = ff_bits(word) & rest;
    }
    bytes_.need(at_, kBytesOfRound);
    bytes_.seek(at_);
    return word;
  }
  // `left`: bytes of the word behind it.
  SHARD_EXACT std::uint32_t next_byte(std::uint32_t left) {
    if (at_ < end_) {
      const std::uint32_t byte = bytes_.byte(at_);
      if (byte != 0xFF) {
        ++at_;
        return byte;
      }
      if (end_ - at_ >= 2 && bytes_.byte(at_ + 1) == 0) {
        at_ += 2;
        stuffing_ |= 1U << left;
        return byte;
      }
    }
    added_ += 8;
    return 0;
  }

  Bytes bytes_;
  std::uint32_t first_;
  std::uint32_t end_;
  std::uint32_t near_end_;  // from here on, a word and its stuffing may lead beyond the end
  std::uint32_t at_ = 0;    // the next byte to load
  std::uint32_t words_[kWindowBits / 32] = {};  // the window: bits that were loaded, the next one highest
  std::uint32_t used_ = 0;                      // of them: those that were taken
  std::uint32_t added_ = 0;                     // zeros behind the end that were loaded
  std::uint32_t stuffing_ =
      0;  // a bit for each byte that was loaded, the last one lowest: stuffing follows it
};

}  // namespace shard::jpeg
