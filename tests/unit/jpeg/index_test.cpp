#include "jpeg/index.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

// 3 x 2 pieces: 20 MCUs of 16 pixels across.
Indexed small_image() {
  std::mt19937_64 random(4);
  JpegOptions options;
  options.width = 310;
  options.height = 30;
  options.factors = {{2, 2}, {1, 1}, {1, 1}};
  return Indexed(random_file(random, options));
}

TEST(JpegIndex, HasTenBytesPerPieceOfThreeComponents) {
  const Indexed image = small_image();
  EXPECT_EQ(image.index().size(), 6U);
  EXPECT_EQ(image.result.index.size(), 16U + 60U);
}

TEST(JpegIndex, IsReadAsItWasWritten) {
  const Indexed image = small_image();
  std::vector<jpeg::EntryPoint> entries;
  for (std::uint32_t i = 0; i < image.index().size(); ++i) entries.push_back(image.index()[i]);
  EXPECT_NE(entries[1].predictors[0], 0);
  const auto again =
      jpeg::encode_index(image.header.layout, image.header.data_offset, entries, image.index()[6].position);
  EXPECT_EQ(again, image.result.index);
}

TEST(JpegIndex, NamesWhatDoesNotFitTheFile) {
  const Indexed image = small_image();
  const auto changed = [&](auto change) {
    std::vector<std::byte> bytes = image.result.index;
    change(bytes);
    return image.index(bytes);
  };
  const auto expect = [&](auto change, const char* piece) {
    EXPECT_SHARD_ERROR(changed(change), ErrorCode::corrupt, piece);
  };
  expect([](Bytes& b) { b.pop_back(); }, "75 bytes; an image of 6 pieces has 76");
  expect([](Bytes& b) { b.clear(); }, "0 bytes");
  expect([](Bytes& b) { b[0] = std::byte{2}; }, "begins with 2, 3, 8, 0 instead of 1, 3, 8, 0");
  expect([](Bytes& b) { b[1] = std::byte{1}; }, "begins with 1, 1, 8, 0");
  expect([](Bytes& b) { b[2] = std::byte{16}; }, "begins with 1, 3, 16, 0");
  expect([](Bytes& b) { b[3] = std::byte{1}; }, "begins with 1, 3, 8, 1");
  expect([](Bytes& b) { store_u32(b, 4, 5); }, "5 entries; the image has 6 pieces");
  expect([](Bytes& b) { store_u32(b, 8, 5); }, "image data at offset 5");
  expect([](Bytes& b) { store_u32(b, 12, 0xFFFFFFFF); }, "the image data end at bit 4294967295");
  expect([](Bytes& b) { store_u32(b, 12, 9); }, "the image data end at bit 9");
  expect([](Bytes& b) { store_u32(b, 16, 1); }, "piece 0 begins at bit 1");
  expect([](Bytes& b) { store_u32(b, 24, load_u32(b, 20) + 95); }, "it must be at");
  expect([](Bytes& b) { b[40] = std::byte{1}; }, "begins with a predictor of 1 instead of 0");
}

TEST(JpegIndex, AnEntryThatIsOneBitOffIsFoundByDecoding) {
  const Indexed image = small_image();
  for (std::uint32_t i = 1; i <= image.index().size(); ++i)
    for (const std::uint32_t by : {1U, 0xFFFFFFFFU, 8U}) {
      Indexed other = image;
      const std::size_t at = i == image.index().size() ? 12 : 16 + 4 * i;
      store_u32(other.result.index, at, load_u32(other.result.index, at) + by);
      EXPECT_SHARD_ERROR(other.decode(), ErrorCode::corrupt, "JPEG: piece ");
    }
  for (std::uint32_t i = 1; i < image.index().size(); ++i)
    for (std::uint32_t byte = 0; byte < 6; ++byte) {
      Indexed other = image;
      other.result.index[16 + 24 + 6 * i + byte] ^= std::byte{1};
      EXPECT_SHARD_ERROR(other.decode(), ErrorCode::corrupt, "does not end where the next one begins");
    }
}

}  // namespace
}  // namespace shard::testing
