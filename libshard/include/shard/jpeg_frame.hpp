// Frames of codec jpeg (docs/format.md) made of JPEG files as they are: the file's own bytes and an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/error.hpp"
#include "shard/jpeg_file.hpp"

namespace shard {

struct JpegFrame {
  std::vector<std::byte> bytes;
  jpeg::FrameFile file;
  // Bytes between the image data and the next marker, which decoders skip: an encoder's, or a sign of damage.
  std::size_t extra_bytes = 0;
};

// `orientation`: EXIF, 1 to 8, by which the decoded sample is turned upright. Reads all codes, but decodes no
// pixels: 0.25 to 0.34 of the time of a decode. Keeps memory in each thread. Errors:
//   unsupported       another kind of JPEG than a frame holds (progressive, arithmetic codes, several scans,
//                     12 bits, ...), which can be transcoded or encoded; the message says which
//   corrupt           damaged, with the byte
//   invalid_argument  another orientation
JpegFrame make_jpeg_frame(std::span<const std::byte> file, std::uint32_t orientation = 1);

// The file in a frame that has been checked, as one of StoredImages: its first bytes.
inline std::span<const std::byte> file_of(std::span<const std::byte> frame, const jpeg::FrameFile& file) {
  return frame.first(file.bytes);
}

}  // namespace shard
