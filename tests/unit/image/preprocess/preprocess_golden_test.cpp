// Resize and crop give the arrays that Pillow made (tests/golden/make_resize.py).
#include <gtest/gtest.h>

#include <fstream>

#include "support/image/preprocess_support.hpp"

namespace shard::testing {
namespace {

using namespace image;

TEST(Preprocess, ResizesAndCropsAsPillowDoesBitForBit) {
  const auto folder = std::filesystem::path(SHARD_TEST_DATA) / "golden" / "resize";
  const auto sources = read_npy(folder / "sources.npy");
  const auto expected = read_npy(folder / "expected.npy");
  std::ifstream cases(folder / "cases.txt");
  std::vector<Pixels> pictures;
  std::size_t source_at = 0;
  std::size_t expected_at = 0;
  int compared = 0;
  std::string kind;
  while (cases >> kind) {
    if (kind == "source") {
      Pixels picture;
      cases >> picture.width >> picture.height;
      const std::size_t size = std::size_t{picture.width} * picture.height * 3;
      ASSERT_LE(source_at + size, sources.size());
      picture.rgb.assign(&sources[source_at], &sources[source_at] + size);
      source_at += size;
      pictures.push_back(picture);
      continue;
    }
    std::size_t source = 0;
    std::string filter;
    Size squash;
    Size crop;
    PreprocessOptions options;
    cases >> source >> filter >> options.resize_short >> squash.width >> squash.height >> crop.width >>
        crop.height;
    if (squash.width != 0) options.squash = squash;
    options.crop = crop.width != 0 ? std::optional(crop) : std::nullopt;
    options.filter = filter_from_string(filter).value();
    Preprocessor preprocessor(options);
    const Pixels result = copy_of(preprocessor.resize_crop(view_of(pictures.at(source))));
    ASSERT_LE(expected_at + result.rgb.size(), expected.size());
    EXPECT_TRUE(std::equal(result.rgb.begin(), result.rgb.end(), &expected[expected_at]))
        << "source " << source << " " << filter << " to " << result.width << "x" << result.height;
    expected_at += result.rgb.size();
    ++compared;
  }
  EXPECT_EQ(compared, 144);
  EXPECT_EQ(expected_at, expected.size());
}

}  // namespace
}  // namespace shard::testing
