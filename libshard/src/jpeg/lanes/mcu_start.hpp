// Where MCUs start, as a lane finds them that begins to decode anywhere in a scan; and the room of a file's
// lanes for them: chunks of equal size, each linked to the next one of its lane.
//
//   lane 0   [chunk 0] -> [chunk 3]
//   lane 1   [chunk 1] -> [chunk 2] -> [chunk 4]        as many MCUs as a lane's part of the file has
//
// Shared by host and device.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/bits.hpp"

namespace shard::jpeg {

// Values of the components, 16 bits each, modulo 2^16.
using Sums = std::uint64_t;
inline constexpr Sums kSignsOfSums = 0x8000800080008000U;

SHARD_EXACT constexpr Sums plus(Sums a, Sums b) noexcept {
  return ((a & ~kSignsOfSums) + (b & ~kSignsOfSums)) ^ ((a ^ b) & kSignsOfSums);
}
SHARD_EXACT constexpr Sums minus(Sums a, Sums b) noexcept {
  return ((a | kSignsOfSums) - (b & ~kSignsOfSums)) ^ ((a ^ ~b) & kSignsOfSums);
}
SHARD_EXACT constexpr std::uint16_t sum_of(Sums sums, std::uint32_t component) noexcept {
  return static_cast<std::uint16_t>(sums >> (16 * component));
}

struct alignas(16) McuStart {
  std::uint32_t position = 0;  // as EntryPoint has it
  // Bits 0 to 3: the number of the restart marker right before it, or kNoRestart. Bit 4: kAbsolute.
  std::uint32_t flags = kNoRestart;
  // Of the DC differences since the lane's first start; kAbsolute: since a restart, so they are predictors.
  Sums sums = 0;

  static constexpr std::uint32_t kAbsolute = 16;
  SHARD_EXACT std::uint32_t restart() const { return flags & 15U; }
  SHARD_EXACT bool is_absolute() const { return (flags & kAbsolute) != 0; }
};

inline constexpr std::uint32_t kStartsOfChunk = 16;
inline constexpr std::uint32_t kNoChunk = 0xFFFFFFFFU;

// The room of one file. Lanes of a GPU take chunks at the same time.
struct StartPool {
  McuStart* starts = nullptr;      // kStartsOfChunk of each chunk
  std::uint32_t* links = nullptr;  // of each chunk: the lane's next one, or kNoChunk
  std::uint32_t* taken = nullptr;  // chunks; may be counted beyond their number
  std::uint32_t chunks = 0;

  // kNoChunk: none is left.
  SHARD_EXACT std::uint32_t take() const {
#if defined(__CUDA_ARCH__)
    const std::uint32_t chunk = atomicAdd(taken, 1U);
#else
    const std::uint32_t chunk = (*taken)++;
#endif
    if (chunk >= chunks) return kNoChunk;
    links[chunk] = kNoChunk;
    return chunk;
  }
};

// Appends the starts of one lane.
class StartWriter {
 public:
  SHARD_EXACT explicit StartWriter(const StartPool& pool) : pool_(&pool) {}

  // False: the pool is empty; nothing was appended.
  SHARD_EXACT bool append(const McuStart& start) {
    const std::uint32_t place = count_ % kStartsOfChunk;
    if (place == 0 && !go_on()) return false;
    pool_->starts[std::uint64_t{chunk_} * kStartsOfChunk + place] = start;
    ++count_;
    return true;
  }
  // Forgets all starts and keeps their chunks.
  SHARD_EXACT void clear() { count_ = 0; }
  SHARD_EXACT std::uint32_t count() const { return count_; }
  SHARD_EXACT std::uint32_t first_chunk() const { return first_; }

 private:
  SHARD_EXACT bool go_on() {
    std::uint32_t next = count_ == 0 ? first_ : pool_->links[chunk_];
    if (next == kNoChunk) {
      next = pool_->take();
      if (next == kNoChunk) return false;
      if (first_ == kNoChunk)
        first_ = next;
      else
        pool_->links[chunk_] = next;
    }
    chunk_ = next;
    return true;
  }

  const StartPool* pool_;
  std::uint32_t first_ = kNoChunk;
  std::uint32_t chunk_ = kNoChunk;
  std::uint32_t count_ = 0;
};

// Reads the first `count` starts of a lane, one after the other.
class StartReader {
 public:
  SHARD_EXACT StartReader(const StartPool& pool, std::uint32_t first_chunk, std::uint32_t count)
      : pool_(&pool), chunk_(first_chunk), count_(count) {}

  SHARD_EXACT bool at_end() const { return number_ == count_; }
  SHARD_EXACT std::uint32_t number() const { return number_; }
  // Not at the end.
  SHARD_EXACT const McuStart& get() const {
    return pool_->starts[std::uint64_t{chunk_} * kStartsOfChunk + number_ % kStartsOfChunk];
  }
  SHARD_EXACT void next() {
    if (++number_ % kStartsOfChunk == 0 && number_ != count_) chunk_ = pool_->links[chunk_];
  }
  // To the first start at `position` or behind it; true: there is one right there.
  SHARD_EXACT bool find(std::uint32_t position) {
    while (!at_end() && get().position < position) next();
    return !at_end() && get().position == position;
  }

 private:
  const StartPool* pool_;
  std::uint32_t chunk_;
  std::uint32_t count_;
  std::uint32_t number_ = 0;
};

}  // namespace shard::jpeg
