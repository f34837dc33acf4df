// What the image fuzz targets share: bytes of a file -> pixels -> the row of a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::fuzz {

// Decodes and preprocesses in the two ways there are; both succeed with the same bytes, or both refuse.
inline void decode_to_row(const std::uint8_t* data, std::size_t size, image::Format format) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  if (image::detect_format(file) != format) return;

  image::DecodeOptions decode;
  decode.max_pixels = 1 << 20;
  decode.on_warning = static_cast<image::OnWarning>(size % 3);
  if (size % 8 == 7) decode.depth = 12;
  if (format == image::Format::tiff) decode.page = size / 8 % 4 == 3 ? 1 : 0;
  image::PreprocessOptions options;
  options.resize_short = 24;
  options.crop = image::Size{16, 16};
  static image::Decoder decoder;
  static image::Preprocessor preprocessor(options);
  const std::size_t row_bytes = options.sample_spec().size_bytes();

  std::optional<std::vector<std::byte>> whole;
  try {
    const image::RgbView view = decoder.decode(file, decode);
    whole.emplace(row_bytes);
    preprocessor.run(view, *whole);
  } catch (const Error&) {
    whole.reset();
  }
  std::optional<std::vector<std::byte>> direct(row_bytes);
  try {
    preprocessor.run_file(decoder, file, decode, *direct);
  } catch (const Error&) {
    direct.reset();
  }
  if (whole != direct) std::abort();
}

}  // namespace shard::fuzz
