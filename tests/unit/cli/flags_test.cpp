// Names of options in messages.
#include <gtest/gtest.h>

#include "cli/flags.hpp"

namespace shard::cli {
namespace {

TEST(Flags, TakeTheNamesOfOptionsInMessages) {
  EXPECT_EQ(with_flags("use fewer `jobs`, or `samples_per_shard` 3"),
            "use fewer --jobs, or --samples-per-shard 3");
  EXPECT_EQ(with_flags("`shard_bytes`, `images`, `out`"), "--shard-bytes, IMAGES, OUT");
}

TEST(Flags, LeaveWhatIsQuotedAndWhatIsNoName) {
  EXPECT_EQ(with_flags("\"a/`jobs`\" and `jobs`"), "\"a/`jobs`\" and --jobs");
  for (const char* text : {"", "`", "a `b", "``", "`A b`", "`1`"}) EXPECT_EQ(with_flags(text), text);
}

}  // namespace
}  // namespace shard::cli
