// The bytes of files in device memory, for jpeg::BitReader.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>

namespace shard::gpu {

// Read where they are.
class FileInPlace {
 public:
  explicit __device__ FileInPlace(const std::byte* file)
      : words_(reinterpret_cast<const std::uint32_t*>(file)) {}
  __device__ std::uint32_t byte(std::uint32_t i) const { return words_[i / 4] >> (8 * (i % 4)) & 0xFFU; }
  __device__ std::uint32_t word(std::uint32_t at) const {
    // The second word has byte at + 3, so it is there.
    const std::uint32_t bytes = __funnelshift_r(words_[at / 4], words_[(at + 3) / 4], 8 * (at % 4));
    return __byte_perm(bytes, 0, 0x0123);
  }
  __device__ std::uint32_t read(std::uint32_t at) const { return word(at); }
  __device__ void start(std::uint32_t) const {}
  __device__ void reach(std::uint32_t) const {}
  __device__ void seek(std::uint32_t) const {}

 private:
  const std::uint32_t* words_;
};

// A file in device memory, read through a ring of four chunks of 16 bytes per lane, which the copy unit fills
// ahead.
//
//   chunk of the file   c      c + 1   c + 2   c + 3        c: where reach() was last
//   in the ring         there  there   there   on its way
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
#pragma unroll 1
    for (std::uint32_t i = 0; i < kChunks; ++i) fetch();
    __pipeline_wait_prior(1);
  }
  __device__ void reach(std::uint32_t at) {
    // At most 32 bytes further.
#pragma unroll 1
    while (at / kChunkBytes + kChunks != next_) fetch();
    __pipeline_wait_prior(1);
  }
  // Shared memory may be another block's as soon as this one has ended.
  __device__ static void finish() { __pipeline_wait_prior(0); }

 private:
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
    __pipeline_commit();
    ++next_;
  }

  const uint4* file_;
  std::byte* ring_;
  std::uint32_t end_;       // chunks
  std::uint32_t next_ = 0;  // to be fetched
  std::uint32_t low_ = 0;   // the aligned word where the next read begins
};

}  // namespace shard::gpu
