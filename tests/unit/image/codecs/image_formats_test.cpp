// The table of image formats: what a new row needs beside it.
#include "image/codecs/image_formats.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "shard/image/file_kind.hpp"

namespace shard::image {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// tests/golden has images of each format with what Pillow makes of them.
TEST(ImageFormats, EachHasGoldenImagesThatNoOtherRowMatches) {
  std::map<Format, int> found;
  for (const char* const folder : {"images", "optional"})
    for (const auto& entry : fs::directory_iterator(fs::path(SHARD_TEST_DATA) / "golden" / folder)) {
      const std::vector<std::byte> file = bytes_of(entry.path());
      std::string names;
      for (const ImageFormat& each : image_formats())
        if (each.matches(file)) {
          ++found[each.format];
          names += std::string(names.empty() ? "" : ", ") + each.name;
        }
      EXPECT_EQ(names.find(','), std::string::npos) << entry.path() << " is " << names;
    }
  for (const ImageFormat& each : image_formats())
    EXPECT_GE(found[each.format], 4) << each.name << " has too few files in tests/golden/images and optional";
}

TEST(ImageFormats, AreNamedOnceAndFoundByTheirValue) {
  std::set<std::string> names;
  std::set<std::string> extensions;
  for (const ImageFormat& each : image_formats()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name << " is in two rows";
    EXPECT_EQ(find_format(each.format), &each) << each.name << " has the value of another row";
    EXPECT_EQ(to_string(each.format), each.name);
    EXPECT_EQ(each.read_info == nullptr, each.decode == nullptr) << each.name;
    std::string word;
    for (const char c : std::string(each.extensions) + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        EXPECT_TRUE(extensions.insert(word).second) << word << " is in two rows";
        EXPECT_TRUE(is_image_extension(word)) << word;
        word.clear();
      }
    }
  }
  EXPECT_EQ(find_format(Format::unknown), nullptr);
  EXPECT_EQ(to_string(Format::unknown), "unknown");
  for (const char* const other : {"txt", "", "jpg jpeg", "JPG", "json"})
    EXPECT_FALSE(is_image_extension(other)) << other;
  EXPECT_TRUE(is_image_extension("svg"));  // an image that is not decoded
  for (const char* const other : {"sv", "svgz", "", "SVG"})
    EXPECT_FALSE(is_image_extension(other)) << other << " behind svg";
}

}  // namespace
}  // namespace shard::image
