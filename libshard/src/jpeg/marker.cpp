#include "jpeg/marker.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"

namespace shard::jpeg {

SegmentReader::SegmentReader(std::span<const std::byte> file) : file_(file), at_(2) {
  if (file.size() < 2 || file[0] != std::byte{0xFF} || file[1] != std::byte{kMarkerSoi})
    throw Error(ErrorCode::corrupt, "JPEG: does not begin with the bytes FF D8");
}

Segment SegmentReader::next() {
  const auto byte = [this](std::size_t at) { return std::to_integer<std::uint32_t>(file_[at]); };
  const auto ends = [this](std::size_t bytes) { return file_.size() - at_ < bytes; };
  const std::size_t begin = at_;
  if (ends(2)) throw Error(ErrorCode::corrupt, fmt::format("JPEG: ends at byte {} without EOI", begin));
  if (byte(at_) != 0xFF)
    throw Error(ErrorCode::corrupt,
                fmt::format("JPEG: byte {:#04x} at offset {} instead of a marker", byte(at_), begin));
  // Any number of bytes 0xFF may stand before a marker.
  while (!ends(2) && byte(at_ + 1) == 0xFF) ++at_;
  if (ends(2)) throw Error(ErrorCode::corrupt, fmt::format("JPEG: ends at byte {} without EOI", begin));
  Segment segment;
  segment.marker = static_cast<std::uint8_t>(byte(at_ + 1));
  at_ += 2;
  if (segment.marker == kMarkerEoi) return segment;
  if (segment.marker < kMarkerSof0)
    throw Error(ErrorCode::corrupt, fmt::format("JPEG: marker {:#04x} at offset {}", segment.marker, begin));
  if (segment.marker >= kMarkerRst0 && segment.marker <= kMarkerSoi)
    throw Error(ErrorCode::unsupported,
                fmt::format("JPEG: not for the kernels, but for libjpeg-turbo: marker "
                            "{:#04x} at offset {}",
                            segment.marker, begin));
  const std::size_t length = ends(2) ? 0 : byte(at_) << 8 | byte(at_ + 1);
  if (length < 2 || ends(length))
    throw Error(ErrorCode::corrupt, fmt::format("JPEG: a segment of {} bytes at offset {} of a file of {}",
                                                length, begin, file_.size()));
  segment.data = file_.subspan(at_ + 2, length - 2);
  at_ += length;
  return segment;
}

}  // namespace shard::jpeg
