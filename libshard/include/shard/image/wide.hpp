// Images as their files have them: 8 or 16 bits or floats, any number of channels.
//
//   PNG            gray or RGB, 8 or 16 bits; fewer bits are scaled to 8
//   TIFF           1 to 4096 bands of 8 or 16 bits, signed 8 or 16 bits, or floats of 16, 32 or 64 bits; any
//                  page
//   all others     RGB of 8 bits, as decode.hpp gives it: also palettes, CMYK, and TIFF files of fewer bits
//
// Alpha is dropped. Nothing else is converted: gray stays one channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/dtype.hpp"
#include "shard/error.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

struct WideInfo {
  Format format = Format::unknown;
  // u8, u16, f16 or f32. Signed integers and f64 of a file are f32 here; decode_wide() refuses a finite f64
  // that f32 cannot hold (unsupported).
  DType dtype = DType::u8;
  std::uint32_t channels = 3;
  // Upright.
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// Reads headers only. `page`: of a TIFF file; others have page 0 only. Errors: as read_info().
WideInfo read_wide_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page = 0);
// The pages of a TIFF file that are images, by their numbers: previews and masks are left out. {0} of other
// files. Errors: corrupt, unsupported (no such page; more than 65535 pages).
std::vector<std::uint32_t> image_pages(std::span<const std::byte> file);

// Elements of `dtype` [row, column, channel] in C order and in the byte order of this machine.
// A view: whoever returned it owns the elements.
struct WideView {
  const std::byte* data = nullptr;
  DType dtype = DType::u8;
  std::uint32_t channels = 3;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// An upright image, with its memory.
struct WideImage {
  WideInfo info;
  std::vector<std::byte> data;
  WarningSet warnings;
  // Of DecodeOptions::memory.
  MemoryBudget::Share share;
  WideView view() const noexcept { return {data.data(), info.dtype, info.channels, info.width, info.height}; }
};

// Masks: the class of each pixel as the file states it, u8 or u16 with one channel. Of a PNG file the index
// in its palette, or its gray value, not scaled: 3 of 4 bits stays 3. Of a TIFF file one band of 8 or 16
// bits. Errors: as decode(); unsupported (colours).
WideInfo read_mask_info(std::span<const std::byte> file, std::uint64_t max_pixels);
WideImage decode_mask(std::span<const std::byte> file, const DecodeOptions& options);

// `options.page` chooses the page. `decoder` decodes what only decode() knows. Errors: as decode().
WideImage decode_wide(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& options);

}  // namespace shard::image
