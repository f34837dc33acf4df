// Device memory between a frame of codec jpeg and its sample: coefficients, samples of planes, look-ups of
// Huffman tables. A sample that needs more than there is is decoded in bands of MCU rows.
#pragma once

#include <cstdint>
#include <vector>

#include "jpeg/frame.hpp"
#include "jpeg/region.hpp"

namespace shard {

// What decoding this box of the upright image takes at most.
std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file, const jpeg::PixelBox& upright) noexcept;
// What an image of this size and 4:2:0 takes, whole.
std::uint64_t usual_jpeg_workspace_bytes(std::uint64_t pixels, std::uint32_t channels) noexcept;
// What each band takes at most of an image of these sides, which may be turned.
std::uint64_t least_jpeg_workspace_bytes(std::uint32_t height, std::uint32_t width,
                                         std::uint32_t channels) noexcept;

// What it takes to find the starts of MCUs of a file that has no index, of `mcus` and `bytes`. It grows with
// both.
std::uint64_t starts_workspace_bytes(std::uint64_t mcus, std::uint64_t bytes) noexcept;
// What it takes to make its index (Stream::index_jpeg()).
std::uint64_t index_stage_bytes(std::uint64_t mcus, std::uint64_t bytes, std::uint32_t components) noexcept;
std::uint64_t index_stage_bytes(const jpeg::FrameFile& file) noexcept;

// A part of a box, and what decoding it takes at most.
struct JpegBand {
  jpeg::PixelBox box;
  std::uint64_t workspace_bytes = 0;
};
// Adds the parts of the box, one after the other, that each take no more than `workspace_bytes`, if that is
// at least what a band takes.
void add_jpeg_bands(const jpeg::FrameFile& file, const jpeg::PixelBox& upright, std::uint64_t workspace_bytes,
                    std::vector<JpegBand>& bands);

}  // namespace shard
