// The segments of a JPEG file between its scans (T.81, B.1.1): 0xFF and a marker, then a length and data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shard::jpeg {

inline constexpr std::uint8_t kMarkerSof0 = 0xC0;
inline constexpr std::uint8_t kMarkerSof1 = 0xC1;
inline constexpr std::uint8_t kMarkerDht = 0xC4;
inline constexpr std::uint8_t kMarkerDac = 0xCC;
inline constexpr std::uint8_t kMarkerRst0 = 0xD0;
inline constexpr std::uint8_t kMarkerRst7 = 0xD7;
inline constexpr std::uint8_t kMarkerSoi = 0xD8;
inline constexpr std::uint8_t kMarkerEoi = 0xD9;
inline constexpr std::uint8_t kMarkerSos = 0xDA;
inline constexpr std::uint8_t kMarkerDqt = 0xDB;
inline constexpr std::uint8_t kMarkerDri = 0xDD;
inline constexpr std::uint8_t kMarkerApp0 = 0xE0;
inline constexpr std::uint8_t kMarkerApp14 = 0xEE;

// APPn and COM: decoders skip those that they do not know.
constexpr bool is_ancillary(std::uint8_t marker) noexcept {
  return (marker >= kMarkerApp0 && marker <= 0xEF) || marker == 0xFE;
}

// A segment without its length. Borrows the file.
struct Segment {
  std::uint8_t marker = 0;
  std::span<const std::byte> data;

  // Inside `data`, which the caller has checked.
  std::uint32_t u8(std::size_t at) const { return std::to_integer<std::uint32_t>(data[at]); }
  std::uint32_t u16(std::size_t at) const { return u8(at) << 8 | u8(at + 1); }
};

class SegmentReader {
 public:
  // Checks that the file begins with SOI. corrupt: it does not.
  explicit SegmentReader(std::span<const std::byte> file);
  // From `offset` on, where a segment begins.
  SegmentReader(std::span<const std::byte> file, std::size_t offset) : file_(file), at_(offset) {}

  // The next segment; EOI has no data. corrupt: other bytes stand there, or the file ends before the
  // segment's end. unsupported: a marker that has no place between segments, which libjpeg skips.
  Segment next();
  // Behind the last segment.
  std::size_t offset() const noexcept { return at_; }

 private:
  std::span<const std::byte> file_;
  std::size_t at_ = 0;
};

}  // namespace shard::jpeg
