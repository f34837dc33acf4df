// Files that are replaced or published once.
#include <gtest/gtest.h>

#include "base/files/file.hpp"
#include "base/files/publish.hpp"
#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

TEST(Publish, ReplacesTheContent) {
  const TempDir dir;
  publish_file(dir.path() / "f", "first, and longer");
  publish_file(dir.path() / "f", "second");
  const auto bytes = read_file(dir.path() / "f", 100);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "second");
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"f"}));
}

TEST(Publish, AFileIsPublishedOnceOnly) {
  const TempDir dir;
  const auto path = dir.path() / "f";
  EXPECT_TRUE(publish_new_file(path, "first"));
  EXPECT_FALSE(publish_new_file(path, "second"));
  EXPECT_EQ(read_file(path, 100).size(), 5U);
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"f"});
  EXPECT_SHARD_ERROR(publish_new_file(dir.path() / "none" / "x", ""), ErrorCode::not_found, "none");
}

}  // namespace
}  // namespace shard
