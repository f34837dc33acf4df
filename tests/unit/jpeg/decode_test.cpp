// The reference of the kernels equals libjpeg-turbo's default decoder, bit for bit.
#include "jpeg/decode.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

TEST(JpegReference, EqualsLibjpegForEverySizeAndSampling) {
  std::mt19937_64 random(7);
  const std::vector<std::vector<std::array<int, 2>>> factors = {
      {{1, 1}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}}, {{2, 2}, {1, 1}, {1, 1}}, {{1, 2}, {1, 1}, {1, 1}},
      {{4, 1}, {1, 1}, {1, 1}}, {{3, 1}, {1, 1}, {1, 1}}, {{1, 3}, {1, 1}, {1, 1}}};
  const std::uint32_t last = kSanitized ? 18 : 35;
  for (const auto& sampling : factors)
    for (std::uint32_t width = 1; width <= last; ++width)
      for (std::uint32_t height = 1; height <= last; height += width < 6 ? 1 : 3) {
        JpegOptions options;
        options.width = width;
        options.height = height;
        options.factors = sampling;
        const Indexed image(random_file(random, options));
        ASSERT_EQ(image.decode(), decode_jpeg(image.file)) << options.text();
        EXPECT_EQ(image.result.extra_bytes, 0U);
      }
}

TEST(JpegReference, EqualsLibjpegForWhatEncodersWrite) {
  const std::uint64_t count = rounds(3000, 300);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    const JpegOptions options = random_options(random, 70);
    const Indexed image(random_file(random, options));
    ASSERT_EQ(image.decode(), decode_jpeg(image.file)) << options.text() << ", seed " << first_seed() + round;
    EXPECT_EQ(image.result.extra_bytes, 0U);
  }
}

// With the C code of the library (JSIMD_FORCENONE=1) every extreme file differs.
TEST(JpegReference, EqualsLibjpegForCodesAndCoefficientsThatNoEncoderWrites) {
  const std::uint64_t count = rounds(3000, 300);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    RandomJpegOptions options;
    options.coefficients = static_cast<Coefficients>(round % 3);
    const Indexed image(random_jpeg(random, options));
    ASSERT_EQ(image.decode(), decode_jpeg(image.file)) << "seed " << first_seed() + round;
  }
}

// Each colour as a block of its own: quantisation by 1 keeps sums of 8 times a level.
TEST(JpegReference, ConvertsColoursAsLibjpeg) {
  std::mt19937_64 random(3);
  std::vector<std::uint8_t> samples;
  JpegOptions options;
  options.width = 512;
  options.height = 512;
  options.quality = 100;
  options.as_is = true;
  for (std::uint32_t i = 0; i < 512 * 512 * 3; ++i) samples.push_back(static_cast<std::uint8_t>(random()));
  std::vector<std::byte> file = encode_jpeg(options, samples);
  // The same components, named otherwise: Y, Cb, Cr of all values.
  const Indexed rgb(file);
  ASSERT_EQ(rgb.header.layout.colour, jpeg::Colour::rgb);
  for (std::size_t i = 0; i + 12 < file.size(); ++i)
    if (std::memcmp(file.data() + i, "Adobe", 5) == 0) file[i + 11] = std::byte{1};
  const Indexed ycc(file);
  ASSERT_EQ(ycc.header.layout.colour, jpeg::Colour::ycc);
  EXPECT_EQ(ycc.decode(), decode_jpeg(file));
}

TEST(JpegReference, DecodesBoxesAsTheSamePartOfTheWhole) {
  const std::uint64_t count = rounds(400, 60);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    const JpegOptions options = random_options(random, round % 4 == 0 ? 70 : 330);
    const Indexed image(random_file(random, options));
    const JpegPixels whole = decode_jpeg(image.file);
    for (int i = 0; i < 12; ++i) {
      jpeg::PixelBox box;
      box.left = static_cast<std::uint32_t>(random() % whole.width);
      box.top = static_cast<std::uint32_t>(random() % whole.height);
      box.width = 1 + static_cast<std::uint32_t>(random() % (whole.width - box.left));
      box.height = 1 + static_cast<std::uint32_t>(random() % (whole.height - box.top));
      JpegPixels part{box.width, box.height, whole.channels, {}};
      for (std::uint32_t y = box.top; y < box.top + box.height; ++y) {
        const auto row =
            whole.values.begin() +
            static_cast<std::ptrdiff_t>((std::size_t{y} * whole.width + box.left) * whole.channels);
        part.values.insert(part.values.end(), row, row + std::ptrdiff_t{box.width} * whole.channels);
      }
      ASSERT_EQ(image.decode(box), part) << options.text() << ", box " << box.width << "x" << box.height
                                         << "+" << box.left << "+" << box.top;
    }
  }
}

TEST(JpegReference, ReadsOnlyThePiecesOfTheBox) {
  std::mt19937_64 random(5);
  JpegOptions options;
  options.width = 640;
  options.height = 640;
  options.factors = {{2, 2}, {1, 1}, {1, 1}};
  Indexed image(random_file(random, options));
  const JpegPixels before = image.decode({300, 300, 40, 40});
  // All data in front of the row above the box's first one, and behind the row below.
  const jpeg::Index index = image.index();
  const std::uint32_t row = image.header.layout.pieces_of_row();
  const auto byte_of = [&](std::uint32_t piece) {
    return image.header.data_offset + index[piece].position / 8;
  };
  for (std::size_t i = image.header.data_offset; i + 1 < byte_of(17 * row); ++i) image.file[i] = std::byte{0};
  for (std::size_t i = byte_of(23 * row) + 1; i < image.file.size(); ++i) image.file[i] = std::byte{0};
  EXPECT_EQ(image.decode({300, 300, 40, 40}), before);
  EXPECT_SHARD_ERROR(image.decode({300, 0, 40, 40}), ErrorCode::corrupt, "JPEG: piece ");
}

TEST(JpegReference, RefusesBoxesThatLeaveTheImage) {
  std::mt19937_64 random(5);
  const Indexed image(random_file(random, {}));
  for (const jpeg::PixelBox& box :
       {jpeg::PixelBox{0, 0, 0, 1}, jpeg::PixelBox{0, 0, 1, 0}, jpeg::PixelBox{16, 0, 1, 1},
        jpeg::PixelBox{1, 0, 16, 1}, jpeg::PixelBox{0, 5, 1, 0xFFFFFFFF}})
    EXPECT_SHARD_ERROR(image.decode(box), ErrorCode::invalid_argument, "in an image of 16 x 16");
}

// SHARD_TEST_PHOTOS=FOLDER: every *.jpg of baseline below it.
TEST(JpegReference, EqualsLibjpegForPhotographs) {
  const char* const folder = std::getenv("SHARD_TEST_PHOTOS");
  if (folder == nullptr) GTEST_SKIP() << "SHARD_TEST_PHOTOS names no folder";
  std::uint64_t pixels = 0;
  std::uint64_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".jpg") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    try {
      const Indexed image({bytes.begin(), bytes.end()});
      const JpegPixels right = decode_jpeg(bytes, true);
      ASSERT_EQ(image.decode(), right) << entry.path();
      pixels += std::uint64_t{right.width} * right.height;
      ++files;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << entry.path() << ": " << error.what();
    }
  }
  std::printf("%llu files, %llu pixels, none differs\n", static_cast<unsigned long long>(files),
              static_cast<unsigned long long>(pixels));
  EXPECT_GT(files, 0U);
}

}  // namespace
}  // namespace shard::testing
