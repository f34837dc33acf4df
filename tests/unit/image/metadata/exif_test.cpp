#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <utility>

#include "image/metadata/exif.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

// A TIFF structure with one entry in its first directory.
class Tiff {
 public:
  explicit Tiff(bool big_endian) : big_endian_(big_endian) {
    text(big_endian ? "MM" : "II");
    number(42, 2);
    number(8, 4);
  }
  Tiff& text(std::string_view value) {
    for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  Tiff& number(std::uint32_t value, int width) {
    for (int i = 0; i < width; ++i)
      bytes_.push_back(std::byte(value >> 8 * (big_endian_ ? width - 1 - i : i)));
    return *this;
  }
  Tiff& entry(std::uint32_t tag, std::uint32_t type, std::uint32_t count) {
    return number(tag, 2).number(type, 2).number(count, 4);
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  bool big_endian_;
  Bytes bytes_;
};

TEST(ExifOrientation, ReadsBothByteOrders) {
  for (const bool big : {false, true})
    for (int orientation = 1; orientation <= 8; ++orientation) {
      Tiff tiff(big);
      tiff.number(1, 2)
          .entry(0x0112, 3, 1)
          .number(static_cast<std::uint32_t>(orientation), 2)
          .number(0, 2)
          .number(0, 4);
      EXPECT_EQ(image::exif_orientation(tiff.bytes()), orientation);
      Bytes prefixed = {std::byte('E'), std::byte('x'), std::byte('i'),
                        std::byte('f'), std::byte(0),   std::byte(0)};
      prefixed.insert(prefixed.end(), tiff.bytes().begin(), tiff.bytes().end());
      EXPECT_EQ(image::exif_orientation(prefixed), orientation);
    }
}

TEST(ExifOrientation, TakesValuesBehindAnOffset) {
  Tiff tiff(true);
  tiff.number(1, 2).entry(0x0112, 3, 3).number(26, 4).number(0, 4).number(7, 2).number(9, 2).number(9, 2);
  EXPECT_EQ(image::exif_orientation(tiff.bytes()), 7);
}

// As in Pillow, where 6.0 is 6.
TEST(ExifOrientation, TakesFloatsThatAreWholeNumbers) {
  for (const bool big : {false, true})
    for (const auto& [value, orientation] : {std::pair(6.0F, 6), std::pair(6.5F, 1), std::pair(-3.0F, 1)}) {
      Tiff tiff(big);
      tiff.number(1, 2).entry(0x0112, 11, 1).number(std::bit_cast<std::uint32_t>(value), 4).number(0, 4);
      EXPECT_EQ(image::exif_orientation(tiff.bytes()), orientation) << value;
      const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(value));
      const auto high = static_cast<std::uint32_t>(bits >> 32U);
      const auto low = static_cast<std::uint32_t>(bits);
      Tiff twice(big);
      twice.number(1, 2).entry(0x0112, 12, 1).number(26, 4).number(0, 4);
      twice.number(big ? high : low, 4).number(big ? low : high, 4);
      EXPECT_EQ(image::exif_orientation(twice.bytes()), orientation) << value;
    }
}

TEST(ExifOrientation, IsOneForAnythingOutOfRange) {
  for (const std::uint32_t value : {0u, 9u, 0x0600u, 0xFFFFu}) {
    Tiff tiff(false);
    tiff.number(1, 2).entry(0x0112, 3, 1).number(value, 2).number(0, 2).number(0, 4);
    EXPECT_EQ(image::exif_orientation(tiff.bytes()), 1) << value;
  }
}

TEST(ExifOrientation, IsOneForHostileOffsetsAndCounts) {
  const auto with = [](std::uint32_t directory, std::uint32_t entries, std::uint32_t count,
                       std::uint32_t offset) {
    Tiff tiff(false);
    Bytes bytes = tiff.number(entries, 2).entry(0x0112, 3, count).number(offset, 4).bytes();
    for (std::size_t i = 0; i < 4; ++i) bytes[4 + i] = std::byte(directory >> 8 * i);
    return image::exif_orientation(bytes);
  };
  EXPECT_EQ(with(8, 1, 1, 5), 5);           // as it should be
  EXPECT_EQ(with(8, 65535, 1, 5), 5);       // entries end with the data
  EXPECT_EQ(with(0xFFFFFFFF, 1, 1, 5), 1);  // directory behind the end
  EXPECT_EQ(with(21, 1, 1, 5), 1);
  EXPECT_EQ(with(8, 0, 1, 5), 1);
  EXPECT_EQ(with(8, 1, 0, 5), 1);
  EXPECT_EQ(with(8, 1, 0xFFFFFFFF, 0xFFFFFFFF), 1);
  EXPECT_EQ(with(8, 1, 3, 21), 1);
}

TEST(ExifOrientation, StaysInsideOfEveryPrefixAndOfNoise) {
  Tiff tiff(false);
  tiff.number(1, 2).entry(0x0112, 3, 1).number(6, 4);
  for (std::size_t size = 0; size < tiff.bytes().size(); ++size) {
    const Bytes part(tiff.bytes().begin(), tiff.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(image::exif_orientation(part), 1) << size;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    Bytes noise = Tiff(i % 2 == 0).bytes();
    for (std::size_t n = random() % 40; n > 0; --n)
      noise.push_back(std::byte(random() % (i % 3 == 0 ? 256 : 20)));
    const int orientation = image::exif_orientation(noise);
    EXPECT_TRUE(orientation >= 1 && orientation <= 8);
  }
}

TEST(Decoder, TakesImagesWithGarbageForExifAsTheyStand) {
  const Bytes file = read_file(golden_path("jpeg_orientation_1.jpg"));
  const Pixels expected = read_ppm(golden_path("jpeg_orientation_1.jpg.ppm"));
  const std::string_view marker = "Exif";
  const auto at = std::search(file.begin(), file.end(), marker.begin(), marker.end(),
                              [](std::byte a, char b) { return a == static_cast<std::byte>(b); });
  ASSERT_NE(at, file.end());
  const auto tiff = static_cast<std::size_t>(at - file.begin()) + 6;
  for (std::size_t i = 0; i < 14; ++i) {  // the TIFF header and the count of entries
    Bytes damaged = file;
    damaged[tiff + i] = std::byte{0xFF};
    image::Decoder decoder;
    EXPECT_EQ(copy_of(decoder.decode(damaged, {})), expected) << i;
  }
}

}  // namespace
}  // namespace shard::testing
