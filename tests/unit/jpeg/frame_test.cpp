#include "jpeg/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"

namespace shard::testing {
namespace {

// Of 4:2:0, 33 x 17 pixels.
jpeg::FrameFile usual() {
  jpeg::FrameFile file;
  file.bytes = 1000;
  file.factors = 0x11 << 16 | 0x11 << 8 | 0x22;
  file.size = 33 | 17 << 16;
  return file;
}

void expect_same_geometry(const jpeg::Layout& found, jpeg::Layout expected) {
  expected.restart_interval = 0;
  expected.colour = jpeg::Colour::gray;
  for (jpeg::Plane& plane : expected.planes) plane.quantization = plane.dc = plane.ac = 0;
  EXPECT_EQ(std::memcmp(&found, &expected, sizeof found), 0);
}

TEST(JpegFrame, TheGeometryIsThatOfTheFile) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const Indexed image(seed % 2 == 0 ? random_jpeg(random, {})
                                      : random_file(random, random_options(random, 90)));
    const jpeg::FrameFile file = jpeg::frame_file_of(image.header, image.file.size(), 1 + seed % 8);
    EXPECT_NO_THROW(jpeg::check_frame_file(file)) << seed;
    expect_same_geometry(jpeg::geometry_of(file), image.header.layout);
    EXPECT_EQ(jpeg::index_bytes(jpeg::geometry_of(file)), image.result.index.size());
    EXPECT_EQ(file.components(), image.header.layout.components);
  }
}

TEST(JpegFrame, LaysOutComponentsOfTheHead) {
  const jpeg::Layout layout = jpeg::geometry_of(usual());
  EXPECT_EQ(layout.mcu_columns, 3U);
  EXPECT_EQ(layout.mcu_rows, 2U);
  EXPECT_EQ(layout.blocks_of_mcu, 6U);
  EXPECT_EQ(layout.planes[0].columns, 6U);
  EXPECT_EQ(layout.planes[2].width, 17U);
  EXPECT_EQ(layout.blocks[2].y, 1);
}

TEST(JpegFrame, IsTheFileThenTheIndexInUnitsOf16Bytes) {
  const jpeg::FrameFile file = usual();
  EXPECT_EQ(jpeg::index_offset(file), 1008U);
  // 2 rows of one piece: 16 bytes, and 10 for each of both.
  EXPECT_EQ(jpeg::frame_bytes(file), 1008U + 48U);
  const std::vector<std::byte> bytes(1000, std::byte{7});
  const std::vector<std::byte> index(36, std::byte{9});
  std::vector<std::byte> frame = jpeg::make_frame(file, bytes, index);
  ASSERT_EQ(frame.size(), 1056U);
  EXPECT_EQ(frame[999], std::byte{7});
  EXPECT_EQ(frame[1000], std::byte{0});
  EXPECT_EQ(frame[1008], std::byte{9});
  EXPECT_EQ(frame[1043], std::byte{9});
  EXPECT_EQ(frame[1044], std::byte{0});
  const jpeg::FrameParts parts = jpeg::split_frame(file, frame);
  EXPECT_TRUE(std::equal(parts.file.begin(), parts.file.end(), bytes.begin(), bytes.end()));
  EXPECT_TRUE(std::equal(parts.index.begin(), parts.index.end(), index.begin(), index.end()));

  EXPECT_SHARD_ERROR(jpeg::split_frame(file, std::span(frame).first(1040)), ErrorCode::corrupt,
                     "a frame of 1040 bytes: for a file of 1000 bytes and its index it has 1056");
  for (const std::size_t at : {1000, 1007, 1044, 1055}) {
    frame[at] = std::byte{1};
    EXPECT_SHARD_ERROR(jpeg::split_frame(file, frame), ErrorCode::corrupt, "are not zero");
    frame[at] = std::byte{0};
  }
  EXPECT_SHARD_ERROR(jpeg::make_frame(file, std::span(bytes).first(999), index), ErrorCode::invalid_argument,
                     "a file of 999 bytes");
  EXPECT_SHARD_ERROR(jpeg::make_frame(file, bytes, std::span(index).first(35)), ErrorCode::invalid_argument,
                     "an index of 35");
}

TEST(JpegFrame, OrientationsFrom5OnSwapTheSides) {
  jpeg::FrameFile file = usual();
  for (file.orientation = 1; file.orientation <= 8; ++file.orientation) {
    EXPECT_EQ(file.upright_width(), file.orientation < 5 ? 33U : 17U);
    EXPECT_EQ(file.upright_height(), file.orientation < 5 ? 17U : 33U);
  }
}

TEST(JpegFrame, NamesWhatNoFrameHas) {
  EXPECT_NO_THROW(jpeg::check_frame_file(usual()));
  const auto expect = [](const char* piece, auto change) {
    jpeg::FrameFile file = usual();
    change(file);
    EXPECT_SHARD_ERROR(jpeg::check_frame_file(file), ErrorCode::corrupt, piece);
  };
  using File = jpeg::FrameFile;
  expect("a file of 0 bytes", [](File& f) { f.bytes = 0; });
  expect("0 x 17 pixels; a side has 1 to 65500", [](File& f) { f.size = 17 << 16; });
  expect("33 x 0 pixels", [](File& f) { f.size = 33; });
  expect("33 x 65501 pixels", [](File& f) { f.size = 33 | 65501U << 16; });
  expect("65501 x 17 pixels", [](File& f) { f.size = 65501 | 17 << 16; });
  expect("orientation 0; 1 to 8 are valid", [](File& f) { f.orientation = 0; });
  expect("orientation 9", [](File& f) { f.orientation = 9; });
  expect("orientation 257", [](File& f) { f.orientation = 257; });
  expect("sampling factors 0x00000000 are not those of 1, 3 or 4", [](File& f) { f.factors = 0; });
  expect("sampling factors 0x00001111", [](File& f) { f.factors = 0x1111; });
  expect("sampling factors 0x11110011", [](File& f) { f.factors = 0x11110011; });
  expect("sampling factors 0x10111122", [](File& f) { f.factors = 0x10111122; });
  expect("sampling factors 1 x 0 of component 1", [](File& f) { f.factors = 0x110111; });
  expect("sampling factors 5 x 1 of component 0", [](File& f) { f.factors = 0x111115; });
  expect("sampling factors 1 x 5 of component 2", [](File& f) { f.factors = 0x511111; });
  expect("sampling factors 2 x 1 of component 1: 1 to 4 are valid that divide the largest, 3 x 1",
         [](File& f) { f.factors = 0x111213; });
  expect("sampling factors 1 x 3 of component 1: 1 to 4 are valid that divide the largest, 1 x 4",
         [](File& f) { f.factors = 0x113141; });
  expect("sampling factors 0x22 of one component", [](File& f) { f.factors = 0x22; });
  expect("18 blocks in an MCU; 10 are possible", [](File& f) { f.factors = 0x111144; });
  expect("12 blocks in an MCU", [](File& f) { f.factors = 0x222222; });
}

TEST(JpegFrame, RefusesAnOrientationThatIsNone) {
  std::mt19937_64 random(1);
  const jpeg::Header header = jpeg::parse_header(random_file(random, {}));
  for (const std::uint32_t orientation : {0U, 9U})
    EXPECT_SHARD_ERROR(jpeg::frame_file_of(header, 1, orientation), ErrorCode::invalid_argument,
                       "orientation ");
}

}  // namespace
}  // namespace shard::testing
