#include "image/pixels/stored_image.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shard/error.hpp"

namespace shard::image {

void raise_depth(std::span<std::uint8_t> samples, bool big_endian, unsigned depth, std::size_t pixel,
                 std::size_t colors, const char* format) {
  if (depth == 0 || depth == 16) return;
  const unsigned most = (1U << depth) - 1U;
  for (std::size_t i = 0; 2 * i + 1 < samples.size(); ++i) {
    std::uint8_t& high = samples[2 * i + (big_endian ? 0 : 1)];
    std::uint8_t& low = samples[2 * i + (big_endian ? 1 : 0)];
    unsigned value = static_cast<unsigned>(high << 8U | low);
    if (value > most && i % pixel < colors)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{}: it has the number {}, which {} bits do not hold (--depth)", format, value, depth));
    value = std::min(value, most) << (16U - depth);
    high = static_cast<std::uint8_t>(value >> 8U);
    low = static_cast<std::uint8_t>(value & 255U);
  }
}

}  // namespace shard::image
