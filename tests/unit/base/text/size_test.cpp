// Sizes that a person writes.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/text/size.hpp"
#include "support/expect_error.hpp"

namespace shard::cli {
namespace {

TEST(ParseSize, TakesDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("4096b"), 4096U);
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("256 MiB"), 256ULL << 20U);
  EXPECT_EQ(parse_size("1GB"), 1'000'000'000U);
  EXPECT_EQ(parse_size("2g"), 2ULL << 30U);
  EXPECT_EQ(parse_size("1.5GB"), 1'500'000'000U);
  EXPECT_EQ(parse_size("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseSize, RefusesWhatIsNoSizeNamingIt) {
  for (const char* text :
       {"", "MiB", "12x", "-1", "1..5GB", "1.5.2MB", "0x10", "1 0", "12MiBs", "nan", "."}) {
    EXPECT_SHARD_ERROR(parse_size(text), ErrorCode::invalid_argument, "size \"" + std::string(text) + "\"");
  }
  EXPECT_SHARD_ERROR(parse_size("18446744073709551616"), ErrorCode::invalid_argument, "64 bits");
  EXPECT_SHARD_ERROR(parse_size("99999999PiB"), ErrorCode::invalid_argument, "64 bits");
  EXPECT_SHARD_ERROR(parse_size("99999999.5PiB"), ErrorCode::invalid_argument, "64 bits");
}

}  // namespace
}  // namespace shard::cli
