#include "jpeg/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

[[noreturn]] void bad_file(const std::string& what) { throw Error(ErrorCode::corrupt, "JPEG: " + what); }

void check_factors(const FrameFile& file) {
  const std::uint32_t count = file.components();
  std::uint32_t known = 0;
  std::uint32_t blocks = 0;
  std::uint32_t h_max = 1;
  std::uint32_t v_max = 1;
  for (std::uint32_t c = 0; c < count; ++c) {
    known |= factors_of(c, file.h(c), file.v(c));
    blocks += file.h(c) * file.v(c);
    h_max = std::max(h_max, file.h(c));
    v_max = std::max(v_max, file.v(c));
  }
  if ((count != 1 && count != 3 && count != 4) || known != file.factors)
    bad_file(fmt::format("sampling factors {:#010x} are not those of 1, 3 or 4 components", file.factors));
  for (std::uint32_t c = 0; c < count; ++c) {
    const std::uint32_t h = file.h(c);
    const std::uint32_t v = file.v(c);
    if (h > 4 || v == 0 || v > 4 || h_max % h != 0 || v_max % v != 0)
      bad_file(
          fmt::format("sampling factors {} x {} of component {}: 1 to 4 are valid that divide the "
                      "largest, {} x {}",
                      h, v, c, h_max, v_max));
  }
  if (count == 1 && blocks != 1)
    bad_file(fmt::format("sampling factors {:#x} of one component: they are 0x11", file.factors));
  if (blocks > kMostBlocksOfMcu)
    bad_file(fmt::format("{} blocks in an MCU; {} are possible", blocks, kMostBlocksOfMcu));
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

void check_frame_file(const FrameFile& file) {
  if (file.bytes == 0) bad_file("a file of 0 bytes");
  if (file.width() == 0 || file.height() == 0 || std::max(file.width(), file.height()) > kMostPixelsOfSide)
    bad_file(
        fmt::format("{} x {} pixels; a side has 1 to {}", file.width(), file.height(), kMostPixelsOfSide));
  if (file.orientation < 1 || file.orientation > 8)
    bad_file(fmt::format("orientation {}; 1 to 8 are valid", file.orientation));
  check_factors(file);
}

FrameFile frame_file_of(const Header& header, std::size_t file_bytes, std::uint32_t orientation) {
  if (orientation < 1 || orientation > 8)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("JPEG: orientation {}; 1 to 8 are valid", orientation));
  FrameFile file;
  file.bytes = static_cast<std::uint32_t>(file_bytes);
  file.size = header.layout.width | header.layout.height << 16;
  for (std::uint32_t c = 0; c < header.layout.components; ++c)
    file.factors |= factors_of(c, header.layout.planes[c].h, header.layout.planes[c].v);
  file.orientation = orientation;
  return file;
}

std::vector<std::byte> make_frame(const FrameFile& file, std::span<const std::byte> file_bytes,
                                  std::span<const std::byte> index) {
  if (file_bytes.size() != file.bytes || index.size() != index_bytes(geometry_of(file)))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("JPEG: a frame of a file of {} bytes and an index of {}, instead of {} and {}",
                            file_bytes.size(), index.size(), file.bytes, index_bytes(geometry_of(file))));
  std::vector<std::byte> frame(static_cast<std::size_t>(frame_bytes(file)));
  std::copy(file_bytes.begin(), file_bytes.end(), frame.begin());
  std::copy(index.begin(), index.end(), frame.begin() + static_cast<std::ptrdiff_t>(index_offset(file)));
  return frame;
}

FrameParts split_frame(const FrameFile& file, std::span<const std::byte> frame) {
  if (frame.size() != frame_bytes(file))
    bad_file(fmt::format("a frame of {} bytes: for a file of {} bytes and its index it has {}", frame.size(),
                         file.bytes, frame_bytes(file)));
  const auto index_begin = static_cast<std::size_t>(index_offset(file));
  const auto size = static_cast<std::size_t>(index_bytes(geometry_of(file)));
  if (!is_zero(frame.subspan(file.bytes, index_begin - file.bytes)) ||
      !is_zero(frame.subspan(index_begin + size)))
    bad_file("bytes of the frame beside the file and its index are not zero");
  return {frame.first(file.bytes), frame.subspan(index_begin, size)};
}

}  // namespace shard::jpeg
