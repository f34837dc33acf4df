// The bytes of files in device memory, for jpeg::BitReader.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>

#include "jpeg/bits.hpp"

namespace shard::gpu {

// A file in device memory, read through a ring of 16-byte chunks per lane, which the copy unit fills ahead. A
// warp's copies are waited for together, whichever lane began them: so nothing waits for those of the last
// rounds, and a lane that has to (few do) leaves out a round.
//
//   chunk of the file   c      c + 1   c + 2   c + 3                  c: where reach() was last
//   in the ring         there  there   on their way, for up to kRounds rounds
class RingBytes {
 public:
  static constexpr std::uint32_t kChunkBytes = 16;
  static constexpr std::uint32_t kChunks = 4;
  static constexpr std::uint32_t kRingBytes = kChunks * kChunkBytes;
  // From one lane's ring to the next: so that they begin in different banks.
  static constexpr std::uint32_t kStride = kRingBytes + kChunkBytes;

  // `ring`: this lane's, 16-byte aligned.
  __device__ RingBytes(const std::byte* file, std::uint32_t size, std::byte* ring)
      : file_(reinterpret_cast<const uint4*>(file)),
        ring_(ring),
        end_((size + kChunkBytes - 1) / kChunkBytes) {}
  __device__ std::uint32_t byte(std::uint32_t i) const {
    return reinterpret_cast<const std::uint8_t*>(file_)[i];
  }
  __device__ std::uint32_t word(std::uint32_t at) const {
    return turned(ring_word(at), ring_word(at + 4), at);
  }
  __device__ void seek(std::uint32_t at) { low_ = ring_word(at); }
  __device__ std::uint32_t read(std::uint32_t at) {
    const std::uint32_t low = low_;
    low_ = ring_word(at + 4);
    return turned(low, low_, at);
  }
  __device__ void start(std::uint32_t at) {
    // Copies that are still on their way would come over the new ones.
    __pipeline_wait_prior(0);
    next_ = at / kChunkBytes;
    fetch_all(next_);
  }
  // The whole warp.
  __device__ bool reach(std::uint32_t at) {
    const std::uint32_t chunk = at / kChunkBytes;
    recent_ = recent_ << 1 & ((1U << kRounds) - 1);
    if (next_ - chunk < kChunks) {
      fetch();
      recent_ |= 1;
    }
    __pipeline_commit();
    __pipeline_wait_prior(kRounds);
    return has(at, jpeg::kBytesOfRound);
  }
  __device__ void need(std::uint32_t at, std::uint32_t bytes) {
    if (has(at, bytes)) return;
    const std::uint32_t chunk = at / kChunkBytes;
    if (next_ < chunk) return start(at);
    fetch_all(chunk);
  }
  // Shared memory may be another block's as soon as this one has ended.
  __device__ static void finish() { __pipeline_wait_prior(0); }

 private:
  // Rounds that copies may take.
  static constexpr std::uint32_t kRounds = 3;
  // Where a chunk ends right behind `at`, a chunk must be left that may be on its way.
  static_assert(jpeg::kBytesOfRound + kChunkBytes - 1 <= (kChunks - 1) * kChunkBytes);

  __device__ bool has(std::uint32_t at, std::uint32_t bytes) const {
    return (at + bytes - 1) / kChunkBytes < next_ - static_cast<std::uint32_t>(__popc(recent_));
  }
  __device__ void fetch_all(std::uint32_t chunk) {
#pragma unroll 1
    while (next_ - chunk < kChunks) fetch();
    __pipeline_commit();
    __pipeline_wait_prior(0);
    recent_ = 0;
  }
  // The bytes from `at` on, the first one highest.
  __device__ static std::uint32_t turned(std::uint32_t low, std::uint32_t high, std::uint32_t at) {
    return __byte_perm(__funnelshift_r(low, high, 8 * at), 0, 0x0123);
  }
  // The aligned word with byte `at`.
  __device__ std::uint32_t ring_word(std::uint32_t at) const {
    return *reinterpret_cast<const std::uint32_t*>(ring_ + (at & (kRingBytes - 4)));
  }
  __device__ void fetch() {
    if (next_ < end_)
      __pipeline_memcpy_async(ring_ + next_ * kChunkBytes % kRingBytes, file_ + next_, kChunkBytes);
    ++next_;
  }

  const uint4* file_;
  std::byte* ring_;
  std::uint32_t end_;             // chunks
  std::uint32_t next_ = kChunks;  // to be fetched; before start(): none
  std::uint32_t recent_ = 0;      // a bit per round, of the last kRounds: whether a chunk was fetched in it
  std::uint32_t low_ = 0;         // the aligned word where the next read begins
};

}  // namespace shard::gpu
