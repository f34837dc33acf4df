// A folder of images that are none beyond their first bytes, for tests of what a conversion takes as inputs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "convert/sources/scan.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {

// The first bytes of a PNG: an image, whatever its name.
inline const std::string kImage = "\x89PNG\r\n\x1a\n";

inline void write(const std::filesystem::path& path, const std::string& content = kImage) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::vector<std::string> paths(const InputList& list) {
  std::vector<std::string> result;
  for (const Input& input : list.inputs) result.push_back(input.path);
  return result;
}

class InputFolder : public ::testing::Test {
 protected:
  testing::TempDir dir_;
  std::filesystem::path images_ = dir_.path() / "images";
};

}  // namespace shard::convert
