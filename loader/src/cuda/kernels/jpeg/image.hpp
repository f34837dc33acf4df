// What the kernels of jpeg.hpp know of an image, and how they divide their work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/jpeg.hpp"
#include "jpeg/entropy.hpp"

namespace shard::gpu {

// Pieces of one image, per block: as many as its threads.
inline constexpr std::uint32_t kJpegPieces = 128;
inline constexpr std::uint32_t kFewJpegPieces = 32;  // where images have no more
inline constexpr std::uint32_t kJpegBlocks = 128;    // of 8 x 8 values
// A warp makes a strip of a few pairs of rows, one after the other, 4 x 2 pixels per lane. The rows of a pair
// lie between the same two rows of samples: pair k has rows 2 k - 1 and 2 k of the image.
inline constexpr std::uint32_t kJpegQuad = 4;
inline constexpr std::uint32_t kJpegStrip = 32 * kJpegQuad;
inline constexpr std::uint32_t kJpegPairs = 4;   // per warp
inline constexpr std::uint32_t kJpegStrips = 8;  // per block

// The first four bytes of an index that could not be made: those of none.
inline constexpr std::uint32_t kNoIndex = 0;

// From the host.
struct JpegTask {
  jpeg::FrameFile file;
  jpeg::PixelBox box;      // of the stored image
  jpeg::McuWindow window;  // columns: those of whole pieces
  std::uint32_t channels = 0;
  std::uint32_t tables = 0;      // the image's first look-up, among the batch's
  std::uint64_t first_line = 0;  // of coefficients
  const std::byte* frame = nullptr;
  const std::byte* index = nullptr;
  std::byte* pixels = nullptr;
  std::uint32_t makes_index = 0;  // 1 + the number of its lanes' plan, or 0
};

// Of the files without an index.
inline constexpr std::uint32_t kSkipsOfFile = jpeg::kPackedTables * jpeg::kPackedSkips;

// How a file without an index is divided, and where its part of the workspace begins.
struct JpegLanes {
  jpeg::LanePlan plan;
  std::uint32_t image = 0;
  std::uint32_t slot = 0;
  std::uint32_t chunk = 0;
  std::uint64_t index = 0;  // byte of those that are made
};

// The part of a component's plane that is there.
struct JpegPlane {
  std::uint64_t begin = 0;  // among the image's samples
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t stride = 0;
  std::uint32_t last_column = 0;  // of the whole plane
  std::uint32_t last_row = 0;
  jpeg::Upsampling way = jpeg::Upsampling::none;
};

// Made by the first kernel for the others. Of an image whose header is not right only `usable` counts.
struct JpegImage {
  // For pieces.
  jpeg::ScanPlan plan;
  jpeg::McuWindow window;
  std::uint32_t usable = 0;
  std::uint32_t data_offset = 0;
  std::uint32_t code_entries = 0;
  std::uint32_t dc_entries = 0;  // of them, the first ones
  // For samples and pixels.
  std::uint16_t quantization[jpeg::kMostComponents][jpeg::kBlockValues] = {};  // of components, zigzag
  JpegPlane planes[jpeg::kMostComponents];
  jpeg::Layout layout;
};

SHARD_EXACT constexpr std::uint32_t jpeg_strips(const jpeg::PixelBox& box) noexcept {
  const std::uint32_t first = box.left / kJpegQuad * kJpegQuad;
  return (box.left + box.width - first + kJpegStrip - 1) / kJpegStrip;
}
SHARD_EXACT constexpr std::uint32_t jpeg_first_pair(const jpeg::PixelBox& box) noexcept {
  return (box.top + 1) / 2;
}
// Behind the last one.
SHARD_EXACT constexpr std::uint32_t jpeg_end_pair(const jpeg::PixelBox& box) noexcept {
  return (box.top + box.height) / 2 + 1;
}
// Of strips, each of kJpegPairs.
SHARD_EXACT constexpr std::uint32_t jpeg_warps(const jpeg::PixelBox& box) noexcept {
  return jpeg_strips(box) * ((jpeg_end_pair(box) - jpeg_first_pair(box) + kJpegPairs - 1) / kJpegPairs);
}

void launch_jpeg_headers(const JpegLaunch& launch, cudaStream_t stream);
void launch_jpeg_lanes(const JpegLaunch& launch, cudaStream_t stream);
void launch_jpeg_pieces(const JpegLaunch& launch, cudaStream_t stream);
void launch_jpeg_samples(const JpegLaunch& launch, cudaStream_t stream);
void launch_jpeg_pixels(const JpegLaunch& launch, cudaStream_t stream);

}  // namespace shard::gpu
