// The memory that decoding takes from DecodeOptions::memory.
#pragma once

#include <cstdint>

#include "shard/image/decode.hpp"

namespace shard::image {

// Waits for it. Errors: resource, cancelled.
inline MemoryBudget::Share take_memory(const DecodeOptions& options, std::uint64_t size_bytes) {
  return options.memory == nullptr ? MemoryBudget::Share() : options.memory->take(size_bytes, options.cancel);
}

// The RGB pixels of a whole image, twice where it is turned upright.
inline std::uint64_t rgb_bytes(std::uint64_t width, std::uint64_t height, int orientation) noexcept {
  return width * height * 3 * (orientation > 1 ? 2 : 1);
}

}  // namespace shard::image
