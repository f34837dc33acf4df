// Processes that work on the same folder.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "convert/publish/folder_lock.hpp"
#include "support/convert/input_folder.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

TEST(FolderLocks, KeepTheSameRankOutAndLetOthersIn) {
  const testing::TempDir dir;
  const fs::path file = dir.path() / "conversion.json";
  write(file);
  FolderLock shared;
  ASSERT_EQ(shared.try_lock(dir.path(), false), LockResult::taken);
  EXPECT_EQ(shared.try_lock(dir.path(), false), LockResult::taken);  // it has it
  FolderLock also;
  EXPECT_EQ(also.try_lock(dir.path(), false), LockResult::taken);
  FolderLock alone;
  ASSERT_EQ(alone.try_lock(dir.path(), true), LockResult::busy);
  EXPECT_EQ(alone.holder(), ::getpid());
  EXPECT_FALSE(alone.held());

  RankLock first;
  ASSERT_EQ(first.try_lock(file, 1, 4), LockResult::taken);
  RankLock other;
  for (const auto& [rank, world] :
       {std::pair(0U, 4U), {2U, 4U}, {1U, 3U}, {1U, 5U}, {0U, 1U << 20U}, {4U, 1U << 31U}})
    EXPECT_EQ(RankLock().try_lock(file, rank, world), LockResult::taken) << rank << " of " << world;
  ASSERT_EQ(other.try_lock(file, 1, 4), LockResult::busy);
  EXPECT_EQ(other.holder(), ::getpid());
  {
    RankLock large;
    ASSERT_EQ(large.try_lock(file, 4, 1U << 31U), LockResult::taken);
    EXPECT_EQ(other.try_lock(file, 4, 1U << 31U), LockResult::busy);
  }
  EXPECT_EQ(other.try_lock(file, 4, 1U << 31U), LockResult::taken);
  EXPECT_EQ(other.try_lock(dir.path() / "none", 0, 1), LockResult::gone);
}

TEST(FolderLocks, LeaveWithAForkedChildStillHoldingTheDescriptor) {
  const testing::TempDir dir;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ::pid_t child = 0;
  {
    FolderLock lock;
    ASSERT_EQ(lock.try_lock(dir.path(), true), LockResult::taken);
    child = ::fork();
    if (child == 0) {  // holds a copy of every descriptor until it is told to end
      char byte = 0;
      ::close(pipe[1]);
      ::_exit(::read(pipe[0], &byte, 1) == 0 ? 0 : 1);
    }
    ASSERT_GT(child, 0);
  }
  EXPECT_EQ(FolderLock().try_lock(dir.path(), true), LockResult::taken);
  ::close(pipe[1]);
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace shard::convert
