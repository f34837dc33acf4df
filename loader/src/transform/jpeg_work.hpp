// Stream::decode_jpeg(): JPEG files as they are, without an index, to pixels. Stream::index_jpeg(): their
// indices alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jpeg/frame_file.hpp"
#include "jpeg/region.hpp"

namespace shard {

struct JpegWork {
  // Pointers: device memory.
  struct Image {
    jpeg::FrameFile file;             // passed check_frame_file(); less than jpeg::kMostIndexedBytes
    jpeg::PixelBox box;               // inside the upright image
    const std::byte* data = nullptr;  // 16-byte aligned, readable up to a multiple of 16 bytes
    // The whole upright image, 3 bytes per pixel, rows without gaps. Only the box is written.
    std::byte* pixels = nullptr;
  };
  std::span<const Image> images;
  // Device memory, 256-byte aligned, used only during the work: the sum of Stream::jpeg_workspace_bytes().
  std::byte* workspace = nullptr;
  std::uint64_t workspace_bytes = 0;
  // Pinned memory, of each image: 0, or a jpeg::Fault. Then its pixels are undefined. Known when the work is
  // done.
  std::uint32_t* faults = nullptr;
};

// Stream::index_jpeg(). Pointers: device memory.
struct JpegIndexWork {
  struct Frame {
    jpeg::FrameFile file;       // as above
    std::byte* data = nullptr;  // jpeg::frame_bytes(file); 16-byte aligned
  };
  std::span<const Frame> frames;
  // 256-byte aligned, used only during the work. Of each frame: index_stage_bytes(), see
  // codec/jpeg_workspace.hpp.
  std::byte* workspace = nullptr;
  std::uint64_t workspace_bytes = 0;
};

}  // namespace shard
