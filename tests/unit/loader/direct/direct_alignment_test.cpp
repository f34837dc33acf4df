// Which alignment reads past the page cache need.
#include <gtest/gtest.h>

#include <cerrno>

#include "direct/direct_alignment.hpp"
#include "support/expect_error.hpp"

namespace shard::testing {
namespace {

TEST(FindAlignment, DoublesUntilAReadIsAccepted) {
  for (const std::uint32_t needed : {512U, 4096U, 8192U, 65536U, 1U << 20U}) {
    std::uint32_t reads = 0;
    const auto read = [&](std::uint32_t alignment) {
      ++reads;
      return alignment % needed == 0 ? 0 : EINVAL;
    };
    EXPECT_EQ(find_alignment(512, read), needed);
    EXPECT_EQ(1U << (reads - 1), needed / 512);
  }
}

TEST(FindAlignment, RefusesWhatIsNoMatterOfAlignment) {
  EXPECT_SHARD_ERROR(find_alignment(4096, [](std::uint32_t) { return EINVAL; }), ErrorCode::unsupported,
                     "aligned to 4096 to 1048576 bytes are refused");
  EXPECT_SHARD_ERROR(find_alignment(512, [](std::uint32_t) { return EIO; }), ErrorCode::unsupported,
                     "Input/output error");
}

}  // namespace
}  // namespace shard::testing
