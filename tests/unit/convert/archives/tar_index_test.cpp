#include "convert/archives/tar_index.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "base/bytes.hpp"

namespace shard::convert {
namespace {

constexpr std::uint64_t kArchiveBytes = 100'000;

TarListing some_listing() {
  return {{{"a/1.jpg", 512, 1000, ""},
           {"../2.jpg", 2048, 7, "its name contains \"..\""},
           {"in.tar", 4096, 5000, ""}},
          "damaged at byte 99: why"};
}

std::string some_index() {
  TarIndexWriter writer;
  writer.add(0, kArchiveBytes, some_listing());
  writer.add(4096, 5000, {{{"3.jpg", 512, 1, ""}}, ""});
  writer.add(700, as_byte_span("GIF89a"));
  writer.add(600, as_byte_span("12\n"));
  writer.add(700, as_byte_span("GIF8"));
  EXPECT_EQ(writer.entries(), 7U);
  return writer.bytes();
}

void expect_same(const TarListing& found, const TarListing& expected) {
  EXPECT_EQ(found.problem, expected.problem);
  ASSERT_EQ(found.members.size(), expected.members.size());
  for (std::size_t i = 0; i < found.members.size(); ++i) {
    EXPECT_EQ(found.members[i].name, expected.members[i].name);
    EXPECT_EQ(found.members[i].offset, expected.members[i].offset);
    EXPECT_EQ(found.members[i].size_bytes, expected.members[i].size_bytes);
    EXPECT_EQ(found.members[i].problem, expected.members[i].problem);
  }
}

TEST(TarIndex, HasWhatWasListedAndRead) {
  std::optional<TarIndex> index = TarIndex::parse(some_index(), kArchiveBytes);
  ASSERT_TRUE(index);
  expect_same(index->take(0, kArchiveBytes).value(), some_listing());
  expect_same(index->take(4096, 5000).value(), {{{"3.jpg", 512, 1, ""}}, ""});
  EXPECT_FALSE(index->take(4096, 5000)) << "once";
  EXPECT_FALSE(index->take(1, 2));
  EXPECT_EQ(index->read(600, 3), "12\n");
  EXPECT_EQ(index->read(700, 6), "GIF89a");
  EXPECT_EQ(index->read(700, 4), "GIF8");
  EXPECT_FALSE(index->read(700, 5));
  EXPECT_FALSE(index->read(601, 3));
}

TEST(TarIndex, RefusesPlacesOutsideAndNamesThatNoListingGives) {
  const auto parse = [](std::uint64_t begin, std::uint64_t size, const TarMember& member) {
    TarIndexWriter writer;
    writer.add(begin, size, {{member}, ""});
    return TarIndex::parse(writer.bytes(), kArchiveBytes).has_value();
  };
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  EXPECT_TRUE(parse(0, kArchiveBytes, {"a", 512, kArchiveBytes - 512, ""}));
  EXPECT_FALSE(parse(0, kArchiveBytes, {"a", 512, kArchiveBytes - 511, ""}));
  EXPECT_FALSE(parse(0, kArchiveBytes, {"a", 512, kMost, ""}));
  EXPECT_TRUE(parse(0, kArchiveBytes, {"a", 512, kMost, "it was cut"}));
  EXPECT_FALSE(parse(0, kArchiveBytes, {"a", kMost, 1, "it was cut"}));
  EXPECT_FALSE(parse(1, kArchiveBytes, {"a", 512, 1, ""}));
  EXPECT_FALSE(parse(kMost, kMost, {"a", 512, 1, ""}));
  for (const std::string& name : {std::string(), std::string("/a"), std::string("a/../b"),
                                  std::string(5000, 'a'), std::string("a\0b", 3)})
    EXPECT_FALSE(parse(0, kArchiveBytes, {name, 512, 1, ""})) << name;
  TarIndexWriter writer;
  writer.add(kArchiveBytes - 2, as_byte_span("abc"));
  EXPECT_FALSE(TarIndex::parse(writer.bytes(), kArchiveBytes));
}

TEST(TarIndex, SurvivesEveryCutAndFlippedByte) {
  const std::string good = some_index();
  for (std::size_t size = 1; size < good.size(); ++size) {
    std::optional<TarIndex> index = TarIndex::parse(good.substr(0, size), kArchiveBytes);
    if (!index) continue;  // else it was cut between two records
    EXPECT_LE(index->places().size(), 2U);
  }
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      std::optional<TarIndex> index = TarIndex::parse(bad, kArchiveBytes);
      if (!index) continue;
      for (const auto& [begin, size] : index->places()) {
        const TarListing found = index->take(begin, size).value();
        for (const TarMember& member : found.members) {
          if (!member.problem.empty()) continue;
          ASSERT_LE(member.offset, size);
          ASSERT_LE(member.size_bytes, size - member.offset);
        }
      }
    }
}

}  // namespace
}  // namespace shard::convert
