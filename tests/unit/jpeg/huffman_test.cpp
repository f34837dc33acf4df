#include "jpeg/huffman.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace shard::jpeg {
namespace {

// What annex F.16 of T.81 says, bit by bit: the symbol and its length << 8; 0: no code.
std::uint32_t slow_look_up(const HuffmanTable& table, std::uint32_t bits) {
  std::uint32_t first = 0;
  std::uint32_t index = 0;
  for (std::uint32_t length = 1; length <= kLongestCode; ++length) {
    const std::uint32_t code = bits >> (16 - length);
    if (code >= first && code - first < table.counts[length])
      return length << 8 | table.symbols[index + code - first];
    index += table.counts[length];
    first = (first + table.counts[length]) << 1;
  }
  return 0;
}

void expect_right(const HuffmanTable& table) {
  ASSERT_TRUE(is_prefix_code(table));
  LookUp made;
  make_look_up(table, made.entries);
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    ASSERT_EQ(look_up(made.entries, bits), slow_look_up(table, bits)) << bits;
}

// Leaves of a tree that is split at random, deep ones rarely or often; some leaves are left out.
HuffmanTable random_table(std::mt19937_64& random) {
  const std::size_t leaves = 2 + random() % 256;
  const std::uint64_t deep = 1 + random() % 8;
  std::vector<std::uint32_t> depths{0};
  while (depths.size() < leaves) {
    const std::size_t i = random() % std::min<std::size_t>(depths.size(), deep * 8);
    if (depths[i] >= 16) {
      std::shuffle(depths.begin(), depths.end(), random);
      continue;
    }
    ++depths[i];
    depths.push_back(depths[i]);
  }
  std::sort(depths.begin(), depths.end());
  depths.pop_back();
  HuffmanTable table;
  for (const std::uint32_t depth : depths)
    if (random() % 16 != 0) ++table.counts[depth];
  for (std::uint8_t& symbol : table.symbols) symbol = static_cast<std::uint8_t>(random());
  return table;
}

TEST(JpegHuffman, LooksUpEveryCode) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) expect_right(random_table(random));
}

TEST(JpegHuffman, LooksUpTheWorstTable) {
  // One code of each length, then as many of 16 bits as are left.
  HuffmanTable table;
  for (std::uint32_t length = 8; length < 16; ++length) table.counts[length] = 1;
  table.counts[16] = 247;
  expect_right(table);
  table.counts[10] = 200;
  table.counts[16] = 48;
  expect_right(table);
}

TEST(JpegHuffman, NoCodeIsAllOnes) {
  HuffmanTable table;
  table.counts[1] = 1;
  EXPECT_TRUE(is_prefix_code(table));
  table.counts[1] = 2;
  EXPECT_FALSE(is_prefix_code(table));
  table.counts[1] = 1;
  table.counts[16] = 255;
  EXPECT_TRUE(is_prefix_code(table));
  table.counts[2] = 2;
  EXPECT_FALSE(is_prefix_code(table));
}

TEST(JpegHuffman, MoreCodesThanBitsAllow) {
  HuffmanTable table;
  table.counts[8] = 255;
  EXPECT_TRUE(is_prefix_code(table));
  table.counts[9] = 1;
  EXPECT_TRUE(is_prefix_code(table));
  table.counts[9] = 2;
  EXPECT_FALSE(is_prefix_code(table));
}

TEST(JpegHuffman, NoTableExceedsTheLookUp) {
  // The last entry stays unused: nothing is written behind the array.
  std::mt19937_64 random(9);
  for (int round = 0; round < 3000; ++round) {
    const HuffmanTable table = random_table(random);
    if (!is_prefix_code(table)) continue;
    std::vector<std::uint16_t> entries(kLookUpEntries + 64, 0xABCD);
    make_look_up(table, entries.data());
    for (std::size_t i = kLookUpEntries; i < entries.size(); ++i) ASSERT_EQ(entries[i], 0xABCD);
  }
}

}  // namespace
}  // namespace shard::jpeg
