#include "jpeg/header.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "jpeg/frame.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

Bytes encoded(const JpegOptions& options) {
  std::mt19937_64 random(1);
  return random_file(random, options);
}

// The offset of a segment's data.
std::size_t data_of(const Bytes& file, int marker) {
  for (std::size_t i = 2; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xFF} && file[i + 1] == static_cast<std::byte>(marker)) return i + 4;
  return 0;
}

TEST(JpegHeader, LaysOutComponents) {
  JpegOptions options;
  options.width = 33;
  options.height = 17;
  options.factors = {{2, 2}, {1, 1}, {1, 2}};
  options.restart_interval = 9;
  const jpeg::Header header = jpeg::parse_header(encoded(options));
  const jpeg::Layout& layout = header.layout;
  EXPECT_EQ(layout.mcu_columns, 3U);
  EXPECT_EQ(layout.mcu_rows, 2U);
  EXPECT_EQ(layout.blocks_of_mcu, 7U);
  EXPECT_EQ(layout.restart_interval, 9U);
  EXPECT_EQ(layout.colour, jpeg::Colour::ycc);
  EXPECT_EQ(layout.planes[0].width, 33U);
  EXPECT_EQ(layout.planes[0].columns, 6U);
  EXPECT_EQ(layout.planes[1].width, 17U);
  EXPECT_EQ(layout.planes[1].height, 9U);
  EXPECT_EQ(layout.planes[2].height, 17U);
  EXPECT_EQ(layout.planes[2].rows, 4U);
  EXPECT_EQ(layout.blocks[3].x, 1);
  EXPECT_EQ(layout.blocks[3].y, 1);
  EXPECT_EQ(layout.blocks[6].component, 2);
}

TEST(JpegHeader, AComponentByItselfHasNoFactors) {
  JpegOptions options;
  options.components = 1;
  options.width = 33;
  options.factors = {{2, 2}};
  const jpeg::Header header = jpeg::parse_header(encoded(options));
  EXPECT_EQ(header.layout.mcu_columns, 5U);
  EXPECT_EQ(header.layout.blocks_of_mcu, 1U);
  EXPECT_EQ(header.layout.colour, jpeg::Colour::gray);
}

TEST(JpegHeader, KnowsColours) {
  JpegOptions options;
  options.as_is = true;
  EXPECT_EQ(jpeg::parse_header(encoded(options)).layout.colour, jpeg::Colour::rgb);
  options.components = 4;
  EXPECT_EQ(jpeg::parse_header(encoded(options)).layout.colour, jpeg::Colour::cmyk);
  options.as_is = false;
  EXPECT_EQ(jpeg::parse_header(encoded(options)).layout.colour, jpeg::Colour::ycck);
}

TEST(JpegHeader, LeavesOtherKindsToLibjpeg) {
  const auto expect = [](const char* piece, auto change) {
    JpegOptions options;
    change(options);
    EXPECT_SHARD_ERROR(jpeg::parse_header(encoded(options)), ErrorCode::unsupported, piece);
  };
  expect("progressive (SOF2)", [](JpegOptions& o) { o.progressive = true; });
  expect("arithmetic codes (SOF9)", [](JpegOptions& o) { o.arithmetic = true; });
  expect("progressive with arithmetic codes (SOF10)",
         [](JpegOptions& o) { o.arithmetic = o.progressive = true; });
  expect("several scans: the first has 1 of 3", [](JpegOptions& o) { o.scan_of_each = true; });
}

TEST(JpegHeader, NamesWhatIsWrong) {
  const Bytes good = encoded({});
  const std::size_t sof = data_of(good, 0xC0);
  const std::size_t dqt = data_of(good, 0xDB);
  const std::size_t dht = data_of(good, 0xC4);
  const std::size_t sos = data_of(good, 0xDA);
  const auto expect = [&](ErrorCode code, const char* piece, std::size_t at, int value) {
    Bytes file = good;
    file[at] = static_cast<std::byte>(value);
    EXPECT_SHARD_ERROR(jpeg::parse_header(file), code, piece);
    EXPECT_FALSE(jpeg::find_frame_file(file)) << piece;
  };
  expect(ErrorCode::corrupt, "does not begin with the bytes FF D8", 0, 0);
  expect(ErrorCode::corrupt, "instead of a marker", 2, 0x12);
  expect(ErrorCode::corrupt, "marker 0x02", 3, 0x02);
  expect(ErrorCode::unsupported, "marker 0xd3", 3, 0xD3);
  expect(ErrorCode::unsupported, "JFIF of version 2", 11, 2);
  expect(ErrorCode::unsupported, "a segment of marker 0xcc", 3, 0xCC);
  expect(ErrorCode::unsupported, "a segment of marker 0xf0", 3, 0xF0);
  expect(ErrorCode::unsupported, "12 bits per value", sof, 12);
  expect(ErrorCode::unsupported, "2 components", sof + 5, 2);
  expect(ErrorCode::corrupt, "a sampling factor of 0", sof + 7, 0x01);
  expect(ErrorCode::corrupt, "a sampling factor of 5", sof + 7, 0x15);
  expect(ErrorCode::corrupt, "more than 10 blocks", sof + 7, 0x44);
  expect(ErrorCode::corrupt, "quantisation table 4", sof + 8, 4);
  expect(ErrorCode::corrupt, "quantisation table 3 is missing", sof + 8, 3);
  expect(ErrorCode::unsupported, "two components of the name 1", sof + 9, 1);
  expect(ErrorCode::corrupt, "quantisation table of precision 2", dqt, 0x20);
  expect(ErrorCode::corrupt, "number 5", dqt, 0x05);
  expect(ErrorCode::corrupt, "Huffman table of class 2", dht, 0x20);
  expect(ErrorCode::corrupt, "a Huffman table of 15 codes, with 12 bytes left", dht + 1, 3);
  expect(ErrorCode::corrupt, "a DC difference of more than 15 bits", dht + 17, 16);
  expect(ErrorCode::corrupt, "a SOS segment of 10 bytes for 2", sos, 2);
  expect(ErrorCode::unsupported, "another order", sos + 1, 2);
  expect(ErrorCode::corrupt, "Huffman tables 4 and 0", sos + 2, 0x40);
  expect(ErrorCode::unsupported, "no Huffman table 2", sos + 2, 0x20);
  expect(ErrorCode::unsupported, "coefficients 0 to 62", sos + 8, 62);
  Bytes fractions = good;
  fractions[sof + 7] = std::byte{0x31};
  fractions[sof + 10] = std::byte{0x21};
  EXPECT_SHARD_ERROR(jpeg::parse_header(fractions), ErrorCode::unsupported,
                     "sampling factors 2 x 1 beside 3 x 1");
  Bytes empty = good;
  empty[sof + 1] = empty[sof + 2] = std::byte{0};
  EXPECT_SHARD_ERROR(jpeg::parse_header(empty), ErrorCode::corrupt, "16 x 0 pixels");
  Bytes codes = good;
  codes[dht + 1] = std::byte{3};
  codes[dht + 3] = std::byte{2};
  EXPECT_SHARD_ERROR(jpeg::parse_header(codes), ErrorCode::corrupt, "make no code");
  EXPECT_FALSE(jpeg::find_frame_file(codes));
  Bytes large = good;
  large[sof + 1] = large[sof + 2] = std::byte{0xFF};
  EXPECT_SHARD_ERROR(jpeg::parse_header(large), ErrorCode::unsupported, "16 x 65535 pixels");
}

TEST(JpegHeader, EveryCutIsAnError) {
  const Bytes good = encoded({});
  const jpeg::Header header = jpeg::parse_header(good);
  for (std::size_t size = 0; size < header.data_offset; ++size)
    EXPECT_SHARD_ERROR(jpeg::parse_header(std::span(good).first(size)), ErrorCode::corrupt, "JPEG: ");
  EXPECT_EQ(jpeg::parse_header(std::span(good).first(header.data_offset)).data_offset, header.data_offset);
}

// find_frame_file() takes what parse_header() takes, whatever was done to the bytes.
TEST(JpegHeader, FindsTheFrameOfTheSameFiles) {
  std::mt19937_64 random(1);
  std::size_t found = 0;
  std::size_t refused = 0;
  for (std::size_t round = 0; round < 4000; ++round) {
    JpegOptions options;
    options.components = round % 4 == 0 ? 1 : 3;
    options.width = 1 + static_cast<std::uint32_t>(random() % 60);
    options.progressive = round % 16 == 5;
    if (options.components == 3) options.factors = {{2, 1 + static_cast<int>(round % 2)}, {1, 1}, {1, 1}};
    Bytes file = round % 8 == 0 || round < 8 ? random_file(random, options) : encoded(options);
    const std::size_t header = data_of(file, 0xDA) + 10;
    for (std::size_t k = 0; k < round % 3; ++k)
      file[random() % header] = static_cast<std::byte>(random() % 256);
    if (round % 7 == 0) file.resize(random() % file.size());
    std::optional<jpeg::FrameFile> expected;
    try {
      expected = jpeg::frame_file_of(jpeg::parse_header(file), file.size(), 1);
    } catch (const Error&) {
    }
    EXPECT_EQ(jpeg::find_frame_file(file), expected) << round;
    (expected ? found : refused) += 1;
  }
  EXPECT_GT(found, 500U);
  EXPECT_GT(refused, 500U);
}

}  // namespace
}  // namespace shard::testing
