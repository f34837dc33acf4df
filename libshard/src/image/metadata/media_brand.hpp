// What an ISO base media file is: [size] "ftyp" [major brand] [minor version] [compatible brands ...]
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shard::image {

enum class MediaBrand : std::uint8_t { none, avif, heic, heif, canon, other };

// By the first brand that says it; none: no such file. `heif` is an image in a coding that
// the brands do not name.
inline MediaBrand media_brand(std::string_view text) noexcept {
  using namespace std::string_view_literals;
  constexpr std::array kAvif{"avif"sv, "avis"sv};
  constexpr std::array kHeic{"heic"sv, "heix"sv, "heim"sv, "heis"sv, "hevc"sv, "hevx"sv};
  if (text.size() < 12 || text.substr(4, 4) != "ftyp") return MediaBrand::none;
  const auto any_of = [](std::string_view brand, const auto& brands) {
    return std::find(brands.begin(), brands.end(), brand) != brands.end();
  };
  std::size_t end = 0;
  for (std::size_t i = 0; i < 4; ++i) end = end << 8 | static_cast<unsigned char>(text[i]);
  end = std::min({end, text.size(), std::size_t{256}});
  bool heif = false;
  for (std::size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
    const std::string_view brand = text.substr(at, 4);
    if (any_of(brand, kAvif)) return MediaBrand::avif;
    if (any_of(brand, kHeic)) return MediaBrand::heic;
    if (brand == "crx ") return MediaBrand::canon;
    heif = heif || brand == "mif1" || brand == "msf1";
  }
  return heif ? MediaBrand::heif : MediaBrand::other;
}

}  // namespace shard::image
