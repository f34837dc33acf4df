// What a codec returns: the pixels as the file stores them, and how they must be turned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "image/pixels/pixel_buffer.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Warning::few_bits: of samples of 16 bits that were or-ed.
constexpr bool is_few_bits(unsigned used) noexcept { return used != 0 && used < 1U << 14U; }

// DecodeOptions::depth: numbers of `depth` bits become numbers of 16, with the same bits at the upper end.
// `samples`: of 16 bits, `pixel` of them a pixel, the first `colors` of these must fit, the others (alpha)
// are cut off. Errors: unsupported, starting with `format`.
void raise_depth(std::span<std::uint8_t> samples, bool big_endian, unsigned depth, std::size_t pixel,
                 std::size_t colors, const char* format);

struct StoredImage {
  RgbView pixels;  // lies in the buffer given to the codec
  int orientation = 1;
  MemoryBudget::Share share;  // of DecodeOptions::memory: for the pixels, and to turn them upright
  WarningSet warnings;        // that were accepted
};

}  // namespace shard::image
