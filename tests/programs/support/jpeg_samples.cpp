// jpeg_samples FOLDER: writes a small JPEG file of every kind to FOLDER, named after its kind.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "shard/error.hpp"
#include "support/jpeg/jpeg_files.hpp"

namespace {

using shard::testing::JpegOptions;

constexpr std::uint32_t kWidth = 77;
constexpr std::uint32_t kHeight = 51;

std::vector<std::pair<std::string, JpegOptions>> kinds() {
  std::vector<std::pair<std::string, JpegOptions>> all;
  const auto add = [&](const std::string& name, const auto& change) {
    JpegOptions options;
    options.width = kWidth;
    options.height = kHeight;
    change(options);
    all.emplace_back(name, options);
  };
  const auto sampled = [&](const std::string& name, int h, int v) {
    add(name, [&](JpegOptions& o) { o.factors[0] = {h, v}; });
  };
  sampled("444", 1, 1);
  sampled("422", 2, 1);
  sampled("420", 2, 2);
  sampled("440", 1, 2);
  sampled("411", 4, 1);
  sampled("333", 3, 1);  // libjpeg repeats samples
  add("gray", [](JpegOptions& o) { o.components = 1; });
  add("rgb", [](JpegOptions& o) { o.as_is = true; });
  add("cmyk", [](JpegOptions& o) {
    o.components = 4;
    o.as_is = true;
  });
  add("ycck", [](JpegOptions& o) {
    o.components = 4;
    o.factors[0] = {2, 2};
    o.factors[3] = {2, 2};
  });
  add("one", [](JpegOptions& o) { o.width = o.height = 1; });
  add("row", [](JpegOptions& o) { o.height = 1; });
  add("restart", [](JpegOptions& o) {
    o.factors[0] = {2, 2};
    o.restart_interval = 3;
  });
  add("tables", [](JpegOptions& o) { o.table_of_each = true; });
  add("wide_tables", [](JpegOptions& o) { o.wide_tables = true; });
  add("optimized", [](JpegOptions& o) { o.optimize = true; });
  add("progressive", [](JpegOptions& o) {
    o.factors[0] = {2, 2};
    o.progressive = true;
  });
  add("progressive_gray", [](JpegOptions& o) {
    o.components = 1;
    o.progressive = true;
  });
  add("arithmetic", [](JpegOptions& o) { o.arithmetic = true; });
  add("scans", [](JpegOptions& o) {
    o.factors[0] = {2, 1};
    o.scan_of_each = true;
  });
  return all;
}

// Gradients with some noise, so that no two kinds and no two regions are alike.
std::vector<std::uint8_t> pixels(const JpegOptions& of, std::uint32_t seed) {
  std::vector<std::uint8_t> values;
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::uint32_t y = 0; y < of.height; ++y)
    for (std::uint32_t x = 0; x < of.width; ++x)
      for (int c = 0; c < of.components; ++c) {
        state = state * 1664525U + 1013904223U;
        values.push_back(
            static_cast<std::uint8_t>(3 * x + 4 * y * static_cast<unsigned>(c + 1) + (state >> 28)));
      }
  return values;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  std::uint32_t seed = 0;
  for (const auto& [name, options] : kinds()) {
    const auto bytes = shard::testing::encode_jpeg(options, pixels(options, ++seed));
    std::ofstream file(folder / (name + ".jpg"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw shard::Error(shard::ErrorCode::io, "cannot write " + name);
  }
  return 0;
} catch (const shard::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
