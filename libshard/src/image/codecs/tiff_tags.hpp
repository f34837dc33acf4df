// What a directory of a TIFF file says itself, where libtiff replaces it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shard::image {

// True: the pixels of the directory at this offset are indices of a palette, and it has none.
// libtiff takes those of 8 bits and more for gray.
inline bool lacks_palette(std::span<const std::byte> file, std::uint64_t directory) noexcept {
  constexpr std::uint64_t kPhotometric = 262;
  constexpr std::uint64_t kColorMap = 320;
  constexpr std::uint64_t kPalette = 3;
  constexpr std::uint64_t kBig = 43;
  if (file.size() < 16) return false;
  const bool big_endian = file[0] == std::byte{'M'};
  const auto load = [&](std::uint64_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8U | std::to_integer<std::uint64_t>(file[at + (big_endian ? i : bytes - 1 - i)]);
    return value;
  };
  const bool big = load(2, 2) == kBig;
  const std::size_t count_bytes = big ? 8 : 2;
  const std::size_t entry_bytes = big ? 20 : 12;
  std::uint64_t at = directory;
  if (at > file.size() || file.size() - at < count_bytes) return false;
  const std::uint64_t count = load(at, count_bytes);
  at += count_bytes;
  bool palette = false;
  for (std::uint64_t i = 0; i < count && file.size() - at >= entry_bytes; ++i, at += entry_bytes) {
    const std::uint64_t tag = load(at, 2);
    if (tag == kColorMap) return false;
    if (tag == kPhotometric) palette = load(at + (big ? 12 : 8), 2) == kPalette;
  }
  return palette;
}

}  // namespace shard::image
