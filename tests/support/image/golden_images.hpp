// The committed image files of tests/golden/images and tests/golden/refused, and the pixels that the former
// must decode to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "shard/image/decode.hpp"

namespace shard::testing {

using Bytes = std::vector<std::byte>;

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

struct Pixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;  // [row, column, channel]
  bool operator==(const Pixels&) const = default;
};

inline Pixels copy_of(const image::RgbView& view) {
  Pixels pixels{view.width, view.height, {}};
  for (std::uint32_t y = 0; y < view.height; ++y) {
    const std::uint8_t* row = view.data + y * view.stride_bytes;
    pixels.rgb.insert(pixels.rgb.end(), row, row + std::size_t{view.width} * 3);
  }
  return pixels;
}

inline Pixels read_ppm(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string magic;
  Pixels pixels;
  int maximum = 0;
  in >> magic >> pixels.width >> pixels.height >> maximum;
  in.get();
  pixels.rgb.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  if (magic != "P6" || maximum != 255 || pixels.rgb.size() != std::size_t{pixels.width} * pixels.height * 3)
    throw std::runtime_error("not the expected pixels: " + path.string());
  return pixels;
}

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(SHARD_TEST_DATA) / "golden" / "images" / name;
}

// Every file of `folder` (images, refused) but the expected pixels, sorted by name.
inline std::vector<std::filesystem::path> golden_files(const std::string& folder,
                                                       const std::string& extension = "") {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(SHARD_TEST_DATA) / "golden" / folder))
    if (entry.path().extension() != ".ppm" && (extension.empty() || entry.path().extension() == extension))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

inline Pixels expected_pixels(const std::filesystem::path& image) {
  return read_ppm(image.string() + ".ppm");
}

}  // namespace shard::testing
