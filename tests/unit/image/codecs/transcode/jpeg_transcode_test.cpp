#include "image/codecs/transcode/jpeg_transcode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "shard/image/decode.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

TEST(JpegTranscode, KeepsEveryCoefficientAndPixel) {
  const std::uint64_t count = rounds(1000, 150);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    JpegOptions options = random_options(random, 70);
    options.progressive = random() % 2 == 0;
    options.arithmetic = random() % 3 == 0;
    options.scan_of_each = !options.progressive && random() % 2 == 0;
    const std::vector<std::byte> file = random_file(random, options);
    const Indexed image(image::transcode_to_baseline(file));
    ASSERT_EQ(coefficients_of(image.file), coefficients_of(file)) << options.text();
    ASSERT_EQ(image.decode(), decode_jpeg(file)) << options.text();
  }
}

TEST(JpegTranscode, KeepsOtherSegments) {
  std::mt19937_64 random(1);
  JpegOptions options;
  options.progressive = true;
  std::vector<std::byte> file = random_file(random, options);
  using namespace std::string_view_literals;
  constexpr std::string_view kExif = "\xFF\xE1\x00\x0A\x45xif\0\0ab"sv;
  constexpr std::string_view kNote = "\xFF\xFE\x00\x06note"sv;
  for (const std::string_view text : {kExif, kNote}) {
    const auto bytes = std::as_bytes(std::span(text));
    file.insert(file.begin() + 20, bytes.begin(), bytes.end());
  }
  const std::vector<std::byte> baseline = image::transcode_to_baseline(file);
  const std::string_view all(reinterpret_cast<const char*>(baseline.data()), baseline.size());
  EXPECT_NE(all.find("Exif\0\0ab"sv), std::string_view::npos);
  EXPECT_NE(all.find("note"), std::string_view::npos);
  const std::size_t jfif = all.find("JFIF");
  EXPECT_NE(jfif, std::string_view::npos);
  EXPECT_EQ(all.find("JFIF", jfif + 1), std::string_view::npos);
}

// With libjpeg's own list of segments these took half a minute: it grows with the square of their number.
TEST(JpegTranscode, ManySegmentsTakeNoLongerThanTheirBytes) {
  std::mt19937_64 random(1);
  JpegOptions options;
  options.progressive = true;
  const std::vector<std::byte> file = random_file(random, options);
  for (const unsigned marker : {0xE0U, 0xE1U, 0xE5U, 0xEEU, 0xFEU}) {
    std::vector<std::byte> many(file.begin(), file.begin() + 2);
    for (int i = 0; i < 100'000; ++i)
      for (const unsigned byte : {0xFFU, marker, 0U, 2U}) many.push_back(static_cast<std::byte>(byte));
    many.insert(many.end(), file.begin() + 2, file.end());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(decode_jpeg(image::transcode_to_baseline(many)), decode_jpeg(file));
    image::Decoder decoder;
    EXPECT_GT(decoder.decode(many, {}).width, 0U);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << marker;
  }
}

// What tells colours stays: Adobe's marker neither comes nor goes.
TEST(JpegTranscode, KeepsWhatTellsColours) {
  std::mt19937_64 random(1);
  JpegOptions options;
  options.components = 4;
  options.as_is = true;
  options.progressive = true;
  std::vector<std::byte> file = random_file(random, options);
  EXPECT_TRUE(jpeg::parse_header(image::transcode_to_baseline(file)).adobe);
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t adobe = all.find("Adobe");
  ASSERT_NE(adobe, std::string_view::npos);
  file.erase(file.begin() + static_cast<std::ptrdiff_t>(adobe) - 4,
             file.begin() + static_cast<std::ptrdiff_t>(adobe) + 12);
  EXPECT_FALSE(jpeg::parse_header(image::transcode_to_baseline(file)).adobe);
}

TEST(JpegTranscode, RefusesWhatLibjpegSmooths) {
  std::mt19937_64 random(1);
  JpegOptions options;
  options.width = options.height = 64;
  options.progressive = true;
  std::vector<std::byte> file = random_file(random, options);
  // The last scan refines the AC coefficients of Y.
  const std::array<std::byte, 2> kSos = {std::byte{0xFF}, std::byte{0xDA}};
  const auto last = std::find_end(file.begin(), file.end(), kSos.begin(), kSos.end());
  file.erase(last, file.end() - 2);
  EXPECT_SHARD_ERROR(image::transcode_to_baseline(file), ErrorCode::unsupported, "which libjpeg smooths");
}

TEST(JpegTranscode, RefusesDamageAndBounds) {
  std::mt19937_64 random(1);
  JpegOptions options;
  options.width = options.height = 64;
  options.progressive = true;
  std::vector<std::byte> file = random_file(random, options);
  image::TranscodeOptions bounds;
  bounds.max_pixels = 64 * 63;
  EXPECT_THROW(image::transcode_to_baseline(file, bounds), Error);
  const std::atomic<bool> cancel = true;
  bounds = {};
  bounds.cancel = &cancel;
  EXPECT_SHARD_ERROR(image::transcode_to_baseline(file, bounds), ErrorCode::cancelled, "cancelled");
  file.resize(file.size() / 2);
  EXPECT_SHARD_ERROR(image::transcode_to_baseline(file), ErrorCode::corrupt, "JPEG: ");
}

}  // namespace
}  // namespace shard::testing
