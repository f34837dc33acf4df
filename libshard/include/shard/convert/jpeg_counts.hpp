// What became of the images of a data set with codec jpeg.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "shard/error.hpp"

namespace shard::convert {

enum class JpegUse : std::uint8_t {
  // The frame has the bytes of the file.
  kept,
  // A progressive, arithmetic-coded or multi-scan file: the frame has a baseline one with the same
  // coefficients, and so the same pixels.
  transcoded,
  // Its pixels were encoded at the quality of the codec.
  encoded,
};
constexpr std::array<std::string_view, 3> words_of(JpegUse) { return {"kept", "transcoded", "encoded"}; }

// Images of each use.
struct JpegCounts {
  std::array<std::uint64_t, 3> images{};

  void add(JpegUse use) noexcept { ++images[static_cast<std::size_t>(use)]; }
  void add(const JpegCounts& more) noexcept {
    for (std::size_t i = 0; i < images.size(); ++i) images[i] += more.images[i];
  }
  std::uint64_t of(JpegUse use) const noexcept { return images[static_cast<std::size_t>(use)]; }
  bool operator==(const JpegCounts&) const = default;
};

}  // namespace shard::convert
