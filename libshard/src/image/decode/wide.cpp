#include "shard/image/wide.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "image/codecs/png.hpp"
#include "image/codecs/tiff_file.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/memory_errors.hpp"
#include "image/pixels/wide_pixels.hpp"

namespace shard::image {
namespace {

DType dtype_of(const TiffPage& page) {
  switch (page.number) {
    case TiffNumber::whole:
      return page.bits == 8 ? DType::u8 : DType::u16;
    case TiffNumber::negative_too:
      return DType::f32;
    case TiffNumber::floating:
      break;
  }
  return page.bits == 16 ? DType::f16 : DType::f32;
}

// One sample as the file has it, in this machine's byte order, as an element of dtype_of(page). Returns false
// if it is finite and the element is not.
bool put_sample(const TiffPage& page, const std::uint8_t* in, std::byte* out) {
  if (page.number == TiffNumber::negative_too) {
    std::int8_t small = 0;
    std::int16_t large = 0;
    std::memcpy(&small, in, 1);
    if (page.bits == 16) std::memcpy(&large, in, 2);
    const auto value = static_cast<float>(page.bits == 8 ? std::int16_t{small} : large);
    std::memcpy(out, &value, sizeof value);
  } else if (page.bits == 64) {
    double value = 0;
    std::memcpy(&value, in, sizeof value);
    const auto rounded = static_cast<float>(value);
    std::memcpy(out, &rounded, sizeof rounded);
    return std::isfinite(rounded) || !std::isfinite(value);
  } else {
    std::memcpy(out, in, page.bits / 8);
  }
  return true;
}

[[noreturn]] void refuse_double(const std::uint8_t* in, std::uint32_t row, std::uint32_t column) {
  double value = 0;
  std::memcpy(&value, in, sizeof value);
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the value {} at row {}, column {} is too large for dtype f32, and floats of 64 bits "
                  "are stored as f32 or smaller: scale the values first",
                  value, row, column));
}

void invert(std::byte* elements, std::size_t count, DType dtype) {
  if (dtype != DType::u8 && dtype != DType::u16) return;
  for (std::size_t i = 0; i < count * size_bytes(dtype); ++i) elements[i] = ~elements[i];
}

WideInfo info_of(const TiffPage& page) {
  WideInfo info{Format::tiff, dtype_of(page), page.colors, page.width, page.height};
  if (page.orientation >= 5) std::swap(info.width, info.height);
  return info;
}

WideImage decode_wide_tiff(std::span<const std::byte> file, const DecodeOptions& options) {
  TiffFile tiff(file, options.max_pixels, options.on_warning, TiffMode::as_stored, options.page);
  const TiffPage& page = tiff.page();
  WideImage image;
  image.info = info_of(page);
  const std::size_t element = size_bytes(image.info.dtype);
  const std::size_t pixel = element * page.colors;
  const std::uint64_t bytes = std::uint64_t{page.width} * page.height * pixel;
  image.share = take_memory(options, bytes * (page.orientation > 1 ? 2 : 1) + page.memory_bytes);
  image.data.resize(static_cast<std::size_t>(bytes));
  std::vector<std::uint8_t> samples(page.block_bytes() * page.planes());
  const std::size_t stored = page.bits / 8;
  tiff.read_blocks(samples.data(), options.cancel, [&](const TiffBlock& block) {
    for (std::uint32_t row = 0; row < block.rows; ++row) {
      std::byte* out = image.data.data() + ((std::size_t{block.top} + row) * page.width + block.left) * pixel;
      const std::uint8_t* const in = samples.data() + row * page.block_row_bytes;
      for (std::uint32_t column = 0; column < block.columns; ++column)
        for (unsigned band = 0; band < page.colors; ++band, out += element) {
          const std::uint8_t* const sample = page.separate
                                                 ? in + band * page.block_bytes() + column * stored
                                                 : in + (std::size_t{column} * page.samples + band) * stored;
          if (!put_sample(page, sample, out)) refuse_double(sample, block.top + row, block.left + column);
        }
    }
  });
  if (page.color == TiffColor::gray_inverted && page.colors == 1)
    invert(image.data.data(), image.data.size() / element, image.info.dtype);
  turn_wide_upright(image.data, page.width, page.height, pixel, page.orientation);
  if (tiff.warned()) image.warnings.add(Warning::other);
  return image;
}

WideImage decode_as_rgb(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& options) {
  const RgbView view = decoder.decode(file, options);
  WideImage image;
  image.info = {detect_format(file), DType::u8, 3, view.width, view.height};
  const std::size_t row_bytes = std::size_t{view.width} * 3;
  image.data.resize(row_bytes * view.height);
  for (std::uint32_t y = 0; y < view.height; ++y)
    std::memcpy(image.data.data() + y * row_bytes, view.data + y * view.stride_bytes, row_bytes);
  image.warnings = decoder.warnings();
  return image;
}

}  // namespace

WideInfo read_wide_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page) {
  const Format format = detect_format(file);
  if (format == Format::tiff && is_read_as_stored(file, page))
    return info_of(TiffFile(file, max_pixels, OnWarning::harmless, TiffMode::as_stored, page).page());
  const ImageInfo info = read_info(file, max_pixels, page);
  WideInfo wide{format, DType::u8, 3, info.upright_width(), info.upright_height()};
  if (format == Format::png) {
    const PngKind kind = read_png_kind(file, max_pixels);
    wide.channels = kind.channels;
    if (kind.sixteen) wide.dtype = DType::u16;
  }
  return wide;
}

WideInfo read_mask_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  WideInfo info = read_wide_info(file, max_pixels);
  if (info.format == Format::png && read_png_kind(file, max_pixels).palette) info.channels = 1;
  const bool whole = info.dtype == DType::u8 || info.dtype == DType::u16;
  if (info.channels == 1 && whole && (info.format == Format::png || info.format == Format::tiff)) return info;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("it is {} with {} {} of {}, and a mask has one whole number for each pixel: give PNG files "
                  "with a palette or gray values, or TIFF files with one band of 8 or 16 bits",
                  to_string(info.format), info.channels, info.channels == 1 ? "channel" : "channels",
                  to_string(info.dtype)));
}

WideImage decode_mask(std::span<const std::byte> file, const DecodeOptions& options) {
  return with_memory_errors([&] {
    if (read_mask_info(file, options.max_pixels).format == Format::tiff)
      return decode_wide_tiff(file, options);
    return decode_wide_png(file, options, PngValues::as_stored);
  });
}

std::vector<std::uint32_t> image_pages(std::span<const std::byte> file) {
  if (detect_format(file) != Format::tiff) return {0};
  return tiff_pages(file);
}

WideImage decode_wide(Decoder& decoder, std::span<const std::byte> file, const DecodeOptions& options) {
  return with_memory_errors([&] {
    const Format format = detect_format(file);
    if (format == Format::tiff && is_read_as_stored(file, options.page))
      return decode_wide_tiff(file, options);
    if (format == Format::png && options.page == 0 && !read_png_kind(file, options.max_pixels).palette)
      return decode_wide_png(file, options);
    return decode_as_rgb(decoder, file, options);
  });
}

}  // namespace shard::image
