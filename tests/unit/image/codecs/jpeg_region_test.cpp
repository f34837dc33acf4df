// Partial decoding: every box of a JPEG is the same bit for bit as that part of the whole.
#include <gtest/gtest.h>

#include <random>

#include "image/codecs/jpeg.hpp"
#include "shard/error.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

using image::Box;
using image::JpegReader;

Pixels decode_box(JpegReader& reader, const Bytes& file, const image::DecodeOptions& options, const Box& box,
                  std::uint32_t batch) {
  reader.open(file, options);
  reader.start(box);
  Pixels pixels{box.width, 0, {}};
  for (image::RgbView rows = reader.read_rows(batch); rows.height > 0; rows = reader.read_rows(batch)) {
    const Pixels part = copy_of(rows);
    EXPECT_EQ(part.width, box.width);
    EXPECT_LE(part.height, batch);
    pixels.rgb.insert(pixels.rgb.end(), part.rgb.begin(), part.rgb.end());
    pixels.height += part.height;
  }
  reader.finish();
  return pixels;
}

Pixels cut_out(const Pixels& whole, const Box& box) {
  const image::RgbView view{whole.rgb.data() + (std::size_t{box.top} * whole.width + box.left) * 3, box.width,
                            box.height, std::size_t{whole.width} * 3};
  return copy_of(view);
}

class RandomBoxes {
 public:
  Box next(std::uint32_t width, std::uint32_t height) {
    const auto [left, right] = range(width);
    const auto [top, bottom] = range(height);
    return {left, top, right - left, bottom - top};
  }
  std::uint32_t batch() { return pick(1, 20); }

 private:
  std::uint32_t pick(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(generator_() % (high - low + 1));
  }
  std::pair<std::uint32_t, std::uint32_t> range(std::uint32_t size) {
    const std::uint32_t from = pick(0, 3) == 0 ? 0 : pick(0, size - 1);
    return {from, pick(0, 3) == 0 ? size : pick(from + 1, size)};
  }
  std::mt19937 generator_{7};
};

void expect_boxes_as_in_the_whole(const Bytes& file, const image::DecodeOptions& options, int boxes) {
  JpegReader reader;
  RandomBoxes random;
  const image::JpegHeader header = reader.open(file, options);
  const Pixels whole = decode_box(reader, file, options, Box{0, 0, header.width, header.height}, 16);
  for (int i = 0; i < boxes; ++i) {
    const Box box = random.next(header.width, header.height);
    ASSERT_EQ(decode_box(reader, file, options, box, random.batch()), cut_out(whole, box))
        << box.width << "x" << box.height << "+" << box.left << "+" << box.top << " of " << header.width
        << "x" << header.height;
  }
}

TEST(JpegReader, DecodesEveryBoxAsInTheWhole) {
  for (const auto& path : golden_files("images", ".jpg")) {
    SCOPED_TRACE(path.filename().string());
    expect_boxes_as_in_the_whole(read_file(path), {}, 40);
  }
}

TEST(JpegReader, DecodesEveryBoxOfAScaledImageAsInTheWhole) {
  for (const std::uint32_t short_side : {3u, 8u, 13u}) {
    image::DecodeOptions options;
    options.fast_min_short_side = short_side;
    for (const auto& path : golden_files("images", ".jpg")) {
      SCOPED_TRACE(path.filename().string());
      expect_boxes_as_in_the_whole(read_file(path), options, 15);
    }
  }
}

// Large enough that whole rows of blocks are skipped.
TEST(JpegReader, DecodesEveryBoxOfLargerImagesAsInTheWhole) {
  constexpr std::uint32_t kWidth = 211;
  constexpr std::uint32_t kHeight = 173;
  std::mt19937 random(3);
  Pixels image{kWidth, kHeight, {}};
  for (std::uint32_t i = 0; i < kWidth * kHeight * 3; ++i)
    image.rgb.push_back(static_cast<std::uint8_t>(i % kWidth / 2 + i / 700 % 100 + random() % 30));
  for (const int subsampling : {444, 422, 420}) {
    SCOPED_TRACE(subsampling);
    const Bytes file = image::encode_jpeg({image.rgb.data(), kWidth, kHeight, kWidth * 3}, 85, subsampling);
    expect_boxes_as_in_the_whole(file, {}, 200);
    image::DecodeOptions options;
    options.fast_min_short_side = 60;
    expect_boxes_as_in_the_whole(file, options, 50);
  }
}

TEST(JpegReader, FindsDamageBehindTheBox) {
  JpegReader reader;
  for (const char* name : {"jpeg_444_33x20.jpg", "jpeg_progressive_420.jpg", "jpeg_restart_each_row.jpg"}) {
    SCOPED_TRACE(name);
    Bytes file = read_file(golden_path(name));
    file.resize(file.size() - 2);
    try {
      decode_box(reader, file, {}, Box{0, 0, 4, 1}, 8);
      FAIL() << "the missing end was not found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      EXPECT_NE(std::string(error.what()).find("Premature end"), std::string::npos) << error.what();
    }
  }
}

TEST(JpegReader, RefusesABoxOutsideOfTheImage) {
  JpegReader reader;
  const Bytes file = read_file(golden_path("jpeg_420_33x20.jpg"));
  for (const Box box : {Box{0, 0, 34, 20}, Box{33, 0, 1, 1}, Box{0, 20, 1, 1}, Box{1, 1, 0, 5},
                        Box{1, 1, 5, 0}, Box{4, 0, 0xFFFFFFFFu, 1}}) {
    reader.open(file, {});
    try {
      reader.start(box);
      FAIL() << "box " << box.width << "x" << box.height << "+" << box.left << "+" << box.top;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("33x20"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace shard::testing
