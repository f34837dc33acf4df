// A header that is accepted describes an image whose numbers fit together.
#include <cstdlib>
#include <optional>

#include "jpeg/frame.hpp"
#include "jpeg/header.hpp"
#include "jpeg/index.hpp"
#include "shard/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  const std::optional<shard::jpeg::FrameFile> found = shard::jpeg::find_frame_file(file);
  bool parsed = false;
  try {
    const shard::jpeg::Header header = shard::jpeg::parse_header(file);
    parsed = true;
    if (found != shard::jpeg::frame_file_of(header, size, 1)) std::abort();
    const shard::jpeg::Layout& layout = header.layout;
    std::uint32_t blocks = 0;
    for (std::uint32_t c = 0; c < layout.components; ++c) {
      const shard::jpeg::Plane& plane = layout.planes[c];
      blocks += plane.h * plane.v;
      if (plane.width > plane.columns * 8 || plane.height > plane.rows * 8) std::abort();
      if (!is_prefix_code(header.dc[plane.dc]) || !is_prefix_code(header.ac[plane.ac])) std::abort();
      shard::jpeg::LookUp look_up;
      make_look_up(header.ac[plane.ac], look_up.entries);
    }
    if (blocks != layout.blocks_of_mcu || header.data_offset > size) std::abort();
    if (index_bytes(layout) < layout.pieces()) std::abort();
  } catch (const shard::Error&) {
    if (parsed || found) std::abort();
  }
  return 0;
}
