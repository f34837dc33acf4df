// Samples with equal digests but other bytes, which no real data set has, are told apart.
#include "shardctl/duplicates/same_bytes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shard::ctl {
namespace {

// One character per sample is its content; '!' is a damaged one.
Members kept(Members members, const std::string& contents) {
  keep_same_bytes(members, 2, [&](std::uint64_t sample, std::vector<std::byte>& out) {
    out.assign(1, static_cast<std::byte>(contents[sample]));
    return contents[sample] != '!';
  });
  return members;
}

TEST(SameBytes, EqualSamplesStayTogether) {
  const Members members{{0, 0, 0}, {2, 0, 0}, {5, 0, 0}, {1, 1, 0}, {3, 1, 0}};
  EXPECT_TRUE(kept(members, "aba--a") == (Members{{0, 0, 0}, {2, 0, 0}, {5, 0, 0}}));
  EXPECT_TRUE(kept(members, "abab-a") == members);
  EXPECT_TRUE(kept({}, "").empty());
}

TEST(SameBytes, SamplesThatShareADigestOnlyAreSeparated) {
  const Members members{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0}, {5, 1, 0}, {6, 1, 0}};
  EXPECT_TRUE(kept(members, "abacbxx") ==
              (Members{{0, 0, 0}, {2, 0, 0}, {1, 1, 0}, {4, 1, 0}, {5, 2, 0}, {6, 2, 0}}));
  EXPECT_TRUE(kept(members, "abcdexy").empty());
}

TEST(SameBytes, DamagedSamplesAreLeftOut) {
  const Members members{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 1, 0}, {4, 1, 0}};
  EXPECT_TRUE(kept(members, "!aaa!") == (Members{{1, 0, 0}, {2, 0, 0}}));
  EXPECT_TRUE(kept(members, "a!!!!").empty());
}

}  // namespace
}  // namespace shard::ctl
