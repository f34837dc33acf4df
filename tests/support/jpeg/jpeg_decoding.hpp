// Decoding by the kernels' reference, from nothing but the file; and random samples to encode.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "jpeg/decode.hpp"
#include "jpeg/index_builder.hpp"
#include "support/jpeg/jpeg_files.hpp"

namespace shard::testing {

struct Indexed {
  explicit Indexed(std::vector<std::byte> bytes) : file(std::move(bytes)), header(jpeg::parse_header(file)) {
    jpeg::IndexBuilder builder;
    result = builder.build(file, header);
  }
  jpeg::Index index() const { return index(result.index); }
  jpeg::Index index(std::span<const std::byte> bytes) const {
    return jpeg::parse_index(bytes, header.layout, header.data_offset, file.size());
  }
  JpegPixels decode() const { return decode({0, 0, header.layout.width, header.layout.height}); }
  JpegPixels decode(const jpeg::PixelBox& box) const {
    jpeg::Decoder decoder;
    const auto pixels = decoder.decode(file, header, index(), box);
    return {box.width, box.height, header.layout.channels(), {pixels.begin(), pixels.end()}};
  }

  std::vector<std::byte> file;
  jpeg::Header header;
  jpeg::IndexBuilder::Result result;
};

// Gradients, edges and noise, so that neighbouring blocks and components differ.
inline std::vector<std::uint8_t> random_samples(std::mt19937_64& random, std::uint32_t width,
                                                std::uint32_t height, std::uint32_t channels) {
  const std::uint64_t noise = random() % 3 == 0 ? 256 : 1 + random() % 40;
  const std::uint64_t slope_x = random() % 9;
  const std::uint64_t slope_y = random() % 9;
  std::vector<std::uint8_t> samples;
  samples.reserve(std::size_t{width} * height * channels);
  for (std::uint64_t y = 0; y < height; ++y)
    for (std::uint64_t x = 0; x < width; ++x)
      for (std::uint64_t c = 0; c < channels; ++c)
        samples.push_back(static_cast<std::uint8_t>(x * slope_x + y * slope_y + c * 70 + random() % noise));
  return samples;
}

inline std::vector<std::byte> random_file(std::mt19937_64& random, const JpegOptions& options) {
  return encode_jpeg(options, random_samples(random, options.width, options.height,
                                             static_cast<std::uint32_t>(options.components)));
}

// How libjpeg-turbo's encoder is used in life, at random.
inline JpegOptions random_options(std::mt19937_64& random, std::uint32_t most_pixels) {
  const auto below = [&](std::uint64_t end) { return static_cast<int>(random() % end); };
  static const std::vector<std::vector<std::array<int, 2>>> kFactors = {
      {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}, {2, 1}}, {{2, 2}, {1, 1}, {1, 1}, {2, 2}},
      {{1, 2}, {1, 1}, {1, 1}, {1, 2}}, {{4, 1}, {1, 1}, {1, 1}, {4, 1}}, {{4, 2}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 2}, {2, 1}, {1, 2}, {1, 1}}, {{1, 1}, {2, 2}, {1, 1}, {1, 1}}, {{2, 2}, {1, 2}, {2, 1}, {1, 1}},
      {{1, 4}, {1, 1}, {1, 2}, {1, 1}}, {{3, 1}, {1, 1}, {1, 1}, {1, 1}}, {{3, 2}, {1, 2}, {1, 1}, {1, 1}},
      {{1, 3}, {1, 1}, {1, 3}, {1, 1}}};
  JpegOptions options;
  options.width = 1 + static_cast<std::uint32_t>(below(most_pixels));
  options.height = 1 + static_cast<std::uint32_t>(below(most_pixels));
  options.components = std::array<int, 5>{1, 3, 3, 3, 4}[static_cast<std::size_t>(below(5))];
  options.as_is = below(4) == 0;
  options.factors = kFactors[static_cast<std::size_t>(
      options.components != 4 && below(3) == 0 ? below(kFactors.size()) : below(5))];
  options.quality = 1 + below(100);
  options.wide_tables = below(6) == 0;
  options.table_of_each = below(4) == 0;
  options.optimize = below(2) == 0;
  options.restart_interval = below(3) == 0 ? 1 + below(20) : 0;
  return options;
}

}  // namespace shard::testing
