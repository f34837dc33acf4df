#include "image/metadata/exif.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace shard::image {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::size_t kEntryBytes = 12;

class TiffBytes {
 public:
  TiffBytes(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  bool has(std::size_t offset, std::size_t count) const noexcept {
    return offset <= bytes_.size() && count <= bytes_.size() - offset;
  }
  std::uint32_t load(std::size_t offset, std::size_t width) const noexcept {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t at = big_endian_ ? i : width - 1 - i;
      value = (value << 8) | std::to_integer<std::uint32_t>(bytes_[offset + at]);
    }
    return value;
  }
  std::uint64_t load_u64(std::size_t offset) const noexcept {
    const std::uint64_t first = load(offset, 4);
    const std::uint64_t second = load(offset + 4, 4);
    return big_endian_ ? first << 32U | second : second << 32U | first;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

bool starts_with(std::span<const std::byte> data, std::span<const unsigned char> prefix) noexcept {
  return data.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), data.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

// Bytes of one value of a TIFF type; 0 for types that do not exist.
std::size_t value_bytes(std::uint32_t type) noexcept {
  constexpr std::array<std::uint8_t, 17> kBytes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

// Of a small number without a fraction, else 0.
std::uint32_t whole(double value) noexcept {
  constexpr double kMost = 65535;
  return value >= 0 && value <= kMost && value == std::floor(value) ? static_cast<std::uint32_t>(value) : 0;
}

// The first value at `at` where it is a whole number, else 0.
std::uint32_t whole_number(const TiffBytes& tiff, std::uint32_t type, std::size_t at) noexcept {
  switch (type) {
    case 3:  // SHORT
    case 8:  // SSHORT
      return tiff.load(at, 2);
    case 4:   // LONG
    case 9:   // SLONG
    case 13:  // IFD
      return tiff.load(at, 4);
    case 6:  // SBYTE
      return tiff.load(at, 1);
    case 5:     // RATIONAL
    case 10: {  // SRATIONAL
      const std::uint32_t denominator = tiff.load(at + 4, 4);
      const std::uint32_t numerator = tiff.load(at, 4);
      return denominator != 0 && numerator % denominator == 0 ? numerator / denominator : 0;
    }
    case 11:  // FLOAT
      return whole(std::bit_cast<float>(tiff.load(at, 4)));
    case 12:  // DOUBLE
      return whole(std::bit_cast<double>(tiff.load_u64(at)));
    default:
      return 0;
  }
}

// The first value of the entry at `entry`; nothing where the entry is damaged, so that it is as if absent.
std::optional<std::uint32_t> entry_value(const TiffBytes& tiff, std::size_t entry) noexcept {
  const std::uint32_t type = tiff.load(entry + 2, 2);
  const std::size_t width = value_bytes(type);
  const std::uint64_t count = tiff.load(entry + 4, 4);
  if (width == 0 || count == 0) return std::nullopt;
  if (count * width <= 4) return whole_number(tiff, type, entry + 8);
  const std::size_t offset = tiff.load(entry + 8, 4);
  if (count > SIZE_MAX / width || !tiff.has(offset, static_cast<std::size_t>(count) * width))
    return std::nullopt;
  return whole_number(tiff, type, offset);
}

}  // namespace

std::optional<int> exif_orientation_tag(std::span<const std::byte> data) noexcept {
  constexpr std::array<unsigned char, 6> kExif{'E', 'x', 'i', 'f', 0, 0};
  constexpr std::array<unsigned char, 4> kLittle{'I', 'I', 42, 0};
  constexpr std::array<unsigned char, 4> kBig{'M', 'M', 0, 42};
  if (starts_with(data, kExif)) data = data.subspan(kExif.size());
  const bool big = starts_with(data, kBig);
  if ((!big && !starts_with(data, kLittle)) || data.size() < 8) return std::nullopt;

  const TiffBytes tiff(data, big);
  const std::size_t directory = tiff.load(4, 4);
  if (!tiff.has(directory, 2)) return std::nullopt;
  const std::size_t entries = tiff.load(directory, 2);
  std::optional<std::uint32_t> orientation;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (!tiff.has(entry, kEntryBytes)) break;
    if (tiff.load(entry, 2) != kOrientationTag) continue;
    if (const auto value = entry_value(tiff, entry)) orientation = value;  // the last one counts
  }
  if (!orientation) return std::nullopt;
  return *orientation >= 1 && *orientation <= 8 ? static_cast<int>(*orientation) : 1;
}

int exif_orientation(std::span<const std::byte> data) noexcept {
  return exif_orientation_tag(data).value_or(1);
}

}  // namespace shard::image
