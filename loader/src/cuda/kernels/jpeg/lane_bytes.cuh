// The bytes of files in device memory, for jpeg::BitReader.
#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/jpeg/common.cuh"

namespace shard::gpu {

// A file in device memory, read where it is.
class FileInPlace {
 public:
  explicit __device__ FileInPlace(const std::byte* file)
      : words_(reinterpret_cast<const std::uint32_t*>(file)) {}
  __device__ std::uint32_t byte(std::uint32_t i) const { return words_[i / 4] >> (8 * (i % 4)) & 0xFFU; }
  __device__ std::uint32_t near(std::uint32_t i) const { return byte(i); }
  __device__ std::uint32_t word(std::uint32_t i) const {
    // The second word has byte i + 3, so it is there.
    const std::uint32_t bytes = __funnelshift_r(words_[i / 4], words_[(i + 3) / 4], 8 * (i % 4));
    return __byte_perm(bytes, 0, 0x0123);
  }
  __device__ void start(std::uint32_t) const {}
  __device__ void reach(std::uint32_t) const {}

 private:
  const std::uint32_t* words_;
};

// The same, read through a ring of four chunks of 16 bytes per lane, which the copy unit fills ahead.
//
//   chunk of the file   c      c + 1   c + 2   c + 3        c: of the next byte to load
//   in the ring         there  there   on its way, one group of copies each
//
// kLanes: threads of the block.
template <std::uint32_t kLanes>
class FileThroughRing {
 public:
  static constexpr std::uint32_t kChunkBytes = 16;
  static constexpr std::uint32_t kChunks = 4;

  // `ring`: chunk k of this lane is ring[k * kLanes], so that lanes use different banks.
  __device__ FileThroughRing(const std::byte* file, std::uint32_t size, uint4* ring)
      : file_(reinterpret_cast<const uint4*>(file)),
        ring_(ring),
        end_((size + kChunkBytes - 1) / kChunkBytes) {}
  __device__ std::uint32_t byte(std::uint32_t i) const {
    return reinterpret_cast<const std::uint8_t*>(file_)[i];
  }
  __device__ std::uint32_t near(std::uint32_t i) const { return ring_word(i / 4) >> (8 * (i % 4)) & 0xFFU; }
  __device__ std::uint32_t word(std::uint32_t i) const {
    const std::uint32_t bytes = __funnelshift_r(ring_word(i / 4), ring_word((i + 3) / 4), 8 * (i % 4));
    return __byte_perm(bytes, 0, 0x0123);
  }
  __device__ void start(std::uint32_t at) {
    // Copies that are still on their way would come over the new ones.
    __pipeline_wait_prior(0);
    next_ = at / kChunkBytes;
    for (std::uint32_t i = 0; i < kChunks; ++i) fetch();
    __pipeline_wait_prior(2);
  }
  __device__ void reach(std::uint32_t at) {
    if (at / kChunkBytes + kChunks == next_) return;
    // At most 16 bytes further, so one chunk.
    fetch();
    __pipeline_wait_prior(2);
  }
  // Shared memory may be another block's as soon as this one has ended.
  __device__ static void finish() { __pipeline_wait_prior(0); }

 private:
  __device__ std::uint32_t ring_word(std::uint32_t i) const {
    return reinterpret_cast<const std::uint32_t*>(ring_ + i / 4 % kChunks * kLanes)[i % 4];
  }
  __device__ void fetch() {
    if (next_ < end_) __pipeline_memcpy_async(ring_ + next_ % kChunks * kLanes, file_ + next_, kChunkBytes);
    __pipeline_commit();
    ++next_;
  }

  const uint4* file_;
  uint4* ring_;
  std::uint32_t end_;       // chunks
  std::uint32_t next_ = 0;  // to be fetched
};

}  // namespace shard::gpu
