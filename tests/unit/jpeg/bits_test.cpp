#include "jpeg/bits.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace shard::jpeg {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

BitReader<FileBytes> reader_of(const std::vector<std::byte>& bytes, std::uint32_t position = 0) {
  BitReader<FileBytes> reader(FileBytes(bytes), 0, static_cast<std::uint32_t>(bytes.size()));
  reader.go_to(position);
  return reader;
}

// 1 to 16 bits.
template <class Bits>
std::uint32_t take(Bits& bits, std::uint32_t count) {
  bits.fill();
  const std::uint32_t value = bits.peek32() >> (32 - count);
  bits.skip(count);
  return value;
}

TEST(JpegBits, StuffingIsNoData) {
  const auto bytes = bytes_of({0x12, 0xFF, 0x00, 0x34, 0xFF, 0x00, 0xFF, 0x00, 0x56, 0x78});
  auto bits = reader_of(bytes);
  for (const std::uint32_t byte : {0x12U, 0xFFU, 0x34U, 0xFFU, 0xFFU, 0x56U, 0x78U}) {
    bits.fill();
    EXPECT_EQ(take(bits, 8), byte);
  }
  EXPECT_FALSE(bits.overrun());
  EXPECT_EQ(bits.position(), 80U);
  bits.fill();
  bits.skip(1);
  EXPECT_TRUE(bits.overrun());
}

TEST(JpegBits, ZerosComeBehindAMarker) {
  const auto bytes = bytes_of({0xAB, 0xFF, 0xD9, 0x11, 0x22, 0x33, 0x44, 0x55});
  auto bits = reader_of(bytes);
  bits.fill();
  EXPECT_EQ(take(bits, 8), 0xABU);
  EXPECT_FALSE(bits.overrun());
  EXPECT_EQ(bits.position(), 8U);
  EXPECT_EQ(take(bits, 16), 0U);
  EXPECT_TRUE(bits.overrun());
}

// Data of random bits, a quarter of the bytes 0xFF.
TEST(JpegBits, APositionLeadsBackToTheSameBit) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < 200; ++i) {
      bytes.push_back(random() % 4 == 0 ? std::byte{0xFF} : static_cast<std::byte>(random() % 255));
      if (bytes.back() == std::byte{0xFF}) bytes.push_back(std::byte{0});
    }
    auto bits = reader_of(bytes);
    std::uint32_t last = 0;
    while (true) {
      bits.fill();
      const std::uint32_t position = bits.position();
      ASSERT_GE(position, last);
      auto other = reader_of(bytes, position);
      other.fill();
      ASSERT_EQ(other.peek16(), bits.peek16()) << position;
      ASSERT_EQ(other.position(), position);
      bits.skip(1 + static_cast<std::uint32_t>(random() % 31));
      if (bits.overrun()) break;
      ASSERT_GT(bits.position(), last);
      last = position;
    }
    EXPECT_GT(last, 8 * (bytes.size() - 10));
  }
}

TEST(JpegBits, RestartsBehindItsMarkerOnly) {
  const auto bytes = bytes_of({0xAB, 0x7F, 0xFF, 0xFF, 0xD3, 0xC1, 0xFF, 0xD4});
  auto bits = reader_of(bytes);
  bits.fill();
  bits.skip(8);
  auto early = bits;
  EXPECT_FALSE(early.restart(3)) << "a whole byte is left";
  bits.skip(1);
  auto other = bits;
  EXPECT_FALSE(other.restart(4));
  ASSERT_TRUE(bits.restart(3));
  EXPECT_EQ(bits.position(), 40U);
  bits.fill();
  EXPECT_EQ(take(bits, 8), 0xC1U);
  ASSERT_TRUE(bits.restart(4));
  EXPECT_EQ(bits.position(), 64U);
  EXPECT_FALSE(bits.restart(5));
}

TEST(JpegBits, PositionsBehindTheEndGiveZeros) {
  const auto bytes = bytes_of({0x12, 0x34});
  for (const std::uint32_t position : {16U, 17U, 1000U, 0xFFFFFFFFU}) {
    auto bits = reader_of(bytes, position);
    bits.fill();
    EXPECT_EQ(bits.peek16(), 0U);
    bits.skip(8);
    EXPECT_TRUE(bits.overrun());
  }
}

TEST(JpegBits, FindsFfInAWord) {
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    for (std::uint32_t shift = 0; shift < 32; shift += 8)
      for (const std::uint32_t rest : {0x00000000U, 0x7F7F7F7FU, 0xFEFEFEFEU, 0x80808080U}) {
        const std::uint32_t word = (rest & ~(0xFFU << shift)) | byte << shift;
        EXPECT_EQ(ff_bits(word), byte == 0xFF ? 0x80U << shift : 0U) << word;
      }
}

}  // namespace
}  // namespace shard::jpeg
