// What a block that executes programs of augmentation consists of. Included by augment.cu only.
#pragma once

#include <cstdint>

#include "transform/augment/pixel_math.hpp"

namespace shard::gpu {
namespace {

using namespace augment;

constexpr unsigned kAugmentThreads = 512;
// Of a multiprocessor. With three, registers of the blur do not suffice (H200, two views with blur:
// 303,508 views/s, 362,499 with two).
constexpr unsigned kAugmentBlocks = 2;
constexpr unsigned kWarps = kAugmentThreads / 32;
constexpr std::uint32_t kMaxTables = 4;
// Values of a row of sums for the blur, in shared memory.
constexpr std::uint32_t kBlurValues = 6144;

// Instruction without std::array, whose members are not for devices.
struct Step {
  Opcode opcode;
  std::int32_t whole[7];
  float real[16];
};
static_assert(sizeof(Step) == sizeof(Instruction));

struct Shared {
  // Pending tables, of channels 0 to 3.
  std::uint8_t tables[kMaxTables][256];
  std::uint32_t counts[kMaxTables][256];
  std::uint32_t partial[kWarps];
  float blur[kBlurValues];
  Step instruction;
};

// What all threads of a block know.
struct Block {
  std::uint32_t channels;
  std::int32_t height;
  std::int32_t width;
  std::uint32_t pixels;
  std::uint32_t values;
  std::uint8_t* now;
  std::uint8_t* other;
  std::uint8_t* copy;
  float* sum;
  bool pending;
  bool per_channel;
  Shared* shared;
};

__device__ void swap(Block& block) {
  std::uint8_t* const now = block.now;
  block.now = block.other;
  block.other = now;
}

__device__ std::uint32_t sum_of_block(Block& block, std::uint32_t value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFU, value, offset);
  if (threadIdx.x % 32 == 0) block.shared->partial[threadIdx.x / 32] = value;
  __syncthreads();
  std::uint32_t sum = 0;
  for (const std::uint32_t part : block.shared->partial) sum += part;
  __syncthreads();
  return sum;
}

__device__ std::uint32_t byte_of(std::uint32_t word, unsigned byte) { return word >> 8U * byte & 255U; }

// True if samples may be read and written as words of four values.
__device__ bool in_words(const Block& block) { return reinterpret_cast<std::uintptr_t>(block.now) % 4 == 0; }

// Calls each(r, g, b) for the pixels [begin, end) of 3 channels; begin: a multiple of 4. Four pixels at a
// time are three words: a thread waits for memory a quarter as often.
template <class Each>
__device__ void each_pixel(const Block& block, std::uint32_t begin, std::uint32_t end, const Each& each) {
  const std::uint32_t fours = in_words(block) ? (end - begin) / 4 : 0;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(block.now + 3 * std::size_t{begin});
  for (std::uint32_t i = threadIdx.x; i < fours; i += kAugmentThreads) {
    const std::uint32_t a = words[3 * i];
    const std::uint32_t b = words[3 * i + 1];
    const std::uint32_t c = words[3 * i + 2];
    each(byte_of(a, 0), byte_of(a, 1), byte_of(a, 2));
    each(byte_of(a, 3), byte_of(b, 0), byte_of(b, 1));
    each(byte_of(b, 2), byte_of(b, 3), byte_of(c, 0));
    each(byte_of(c, 1), byte_of(c, 2), byte_of(c, 3));
  }
  for (std::uint32_t i = begin + 4 * fours + threadIdx.x; i < end; i += kAugmentThreads) {
    const std::uint8_t* const p = block.now + 3 * std::size_t{i};
    each(p[0], p[1], p[2]);
  }
}

}  // namespace
}  // namespace shard::gpu
