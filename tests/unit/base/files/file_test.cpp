// Files that are read whole, and what their errors say.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/files/file.hpp"
#include "shard/dataset.hpp"
#include "shard/shard_reader.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

TEST(ReadFile, HoldsTheLimitAndNamesThePath) {
  const TempDir dir;
  publish_file(dir.path() / "f", "12345");
  EXPECT_EQ(read_file(dir.path() / "f", 5).size(), 5U);
  EXPECT_SHARD_ERROR(read_file(dir.path() / "f", 4), ErrorCode::resource, "the limit is 4");
  EXPECT_SHARD_ERROR(read_file(dir.path() / "none", 4), ErrorCode::not_found, "none");
  EXPECT_SHARD_ERROR(read_file(dir.path(), 4096), ErrorCode::io, dir.path().native());
  EXPECT_SHARD_ERROR(read_file("/dev/zero", 1000), ErrorCode::resource, "the limit is 1000");
  EXPECT_EQ(read_file("/dev/null", 0).size(), 0U);
  EXPECT_GT(read_file("/proc/self/status", 1 << 20).size(), 100U) << "a file that states no size";
}

TEST(ReadFile, TooManyOpenFilesIsAnErrorThatSaysWhatToDo) {
  const TempDir dir;
  publish_file(dir.path() / "f", "12345");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_SHARD_ERROR(read_file(dir.path() / "f", 10), ErrorCode::resource, "Too many open files");
  EXPECT_SHARD_ERROR(ShardReader::open(dir.path() / "f"), ErrorCode::resource,
                     "this process may have 3 and has them all open: raise 'ulimit -n'");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace shard
