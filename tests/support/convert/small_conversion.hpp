// Whole conversions of a few small images, in this process.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "shard/convert/convert.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {

class SmallConversion : public ::testing::Test {
 protected:
  // Copies a golden image to a/NAME, b/NAME in turn.
  void add(const std::string& golden, int copies = 1) {
    for (int i = 0; i < copies; ++i) {
      const std::filesystem::path folder = images_ / (count_ % 2 == 0 ? "a" : "b");
      std::filesystem::create_directories(folder);
      std::filesystem::copy_file(
          std::filesystem::path(SHARD_TEST_DATA) / "golden" / golden,
          folder / (std::to_string(100 + count_++) + std::filesystem::path(golden).extension().string()));
    }
  }
  Options options() const {
    Options options;
    options.images = images_.string();
    options.out = dir_.path() / "out";
    options.preprocess.resize_short = 8;
    options.preprocess.crop = image::Size{8, 8};
    options.jobs = 4;
    return options;
  }
  std::string rejects() const {
    std::ifstream in(dir_.path() / "out" / kRejectsFile);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  testing::TempDir dir_;
  std::filesystem::path images_ = dir_.path() / "images";
  int count_ = 0;
};

}  // namespace shard::convert
