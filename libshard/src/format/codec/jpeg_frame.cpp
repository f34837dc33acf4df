#include "shard/jpeg_frame.hpp"

#include "jpeg/frame.hpp"
#include "jpeg/index_builder.hpp"

namespace shard {

JpegFrame make_jpeg_frame(std::span<const std::byte> file, std::uint32_t orientation) {
  thread_local jpeg::IndexBuilder builder;
  const jpeg::Header header = jpeg::parse_header(file);
  JpegFrame frame;
  frame.file = jpeg::frame_file_of(header, file.size(), orientation);
  const jpeg::IndexBuilder::Result built = builder.build(file, header);
  frame.extra_bytes = built.extra_bytes;
  frame.bytes = jpeg::make_frame(frame.file, file, built.index);
  return frame;
}

}  // namespace shard
