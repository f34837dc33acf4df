#include "remote/cache/transit_area.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file_io.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using testing::TempDir;

constexpr std::uint64_t kShardBytes = 5000;

// Files of a folder, with or without a name, that this process has open.
std::size_t open_files_of(const std::filesystem::path& folder) {
  std::size_t count = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), gone);
    if (!gone && target.parent_path() == folder) ++count;
  }
  return count;
}

struct Transit : ::testing::Test {
  TempDir folder;
  std::filesystem::path path = folder.path() / "transit";
  std::atomic<int> fetched{0};

  std::optional<TransitArea::File> get(const TransitArea& area, const std::string& name = "a",
                                       std::uint64_t size = kShardBytes) {
    return area.get(name, size,
                    [&](int fd) {
                      ++fetched;
                      pwrite_all(fd, std::vector<std::byte>(size, std::byte{7}), 0, "file");
                    },
                    {});
  }
  static ino_t file_of(const TransitArea::File& file) {
    struct stat status {};
    EXPECT_EQ(::fstat(file.fd.get(), &status), 0);
    EXPECT_EQ(status.st_size, static_cast<off_t>(file.size_bytes));
    return status.st_ino;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
  }
};

TEST_F(Transit, AFileOfItsOwnHasNoName) {
  const TransitArea area(path, false);
  const auto first = get(area);
  const auto second = get(area);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(files(), 0U);
  EXPECT_EQ(fetched, 2);
  EXPECT_NE(file_of(*first), file_of(*second));
  EXPECT_FALSE(first->shared);
}

TEST_F(Transit, AFileThatWasGivenBackIsUsedAgain) {
  const TransitArea area(path, false);
  auto first = get(area, "a", 100);
  auto second = get(area, "b", 3 * kShardBytes);
  const ino_t small = file_of(*first);
  const ino_t large = file_of(*second);
  area.give_back("a", std::move(*first));
  const auto third = get(area, "c", 2 * kShardBytes);  // another name, another size
  EXPECT_EQ(file_of(*third), small);
  area.give_back("b", std::move(*second));
  const auto fourth = get(area, "a", 7);
  EXPECT_EQ(file_of(*fourth), large);
}

TEST_F(Transit, SparesTakeNoMoreRoomThanWasNeeded) {
  const TransitArea area(path, false);
  std::vector<TransitArea::File> held;
  for (int i = 0; i < 4; ++i) held.push_back(*get(area));
  for (TransitArea::File& file : held) area.give_back("a", std::move(file));
  EXPECT_EQ(open_files_of(path), 4U);
  const auto large =
      get(area, "b", 3 * kShardBytes);  // one of the four, which grows: two of the others have to go
  EXPECT_EQ(open_files_of(path), 2U);
}

TEST_F(Transit, AFetchThatFailsLeavesItsFileForTheNext) {
  const TransitArea area(path, false);
  ino_t failed = 0;
  EXPECT_SHARD_ERROR(area.get("a", kShardBytes,
                              [&](int fd) {
                                struct stat status {};
                                ASSERT_EQ(::fstat(fd, &status), 0);
                                failed = status.st_ino;
                                throw Error(ErrorCode::io, "cut");
                              },
                              {}),
                     ErrorCode::io, "cut");
  EXPECT_EQ(file_of(*get(area)), failed);
}

TEST_F(Transit, AChildMakesFilesOfItsOwn) {
  const TransitArea area(path, false);
  auto first = get(area);
  auto second = get(area);
  area.give_back("a", std::move(*first));
  EXPECT_EQ(open_files_of(path), 2U);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const ino_t parents = file_of(*second);
    area.give_back("a", std::move(*second));  // the parent still reads it
    const auto own = get(area);
    ::_exit(own && file_of(*own) != parents && open_files_of(path) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Transit, ProcessesShareAFileUntilTheLastOneGivesItBack) {
  const TransitArea area(path, true);
  auto first = get(area);
  auto second = get(area);  // as another process would
  ASSERT_TRUE(first && second);
  EXPECT_EQ(fetched, 1);
  EXPECT_TRUE(first->shared && second->shared);
  area.give_back("a", std::move(*first));
  EXPECT_EQ(files(), 1U);
  area.give_back("a", std::move(*second));
  EXPECT_EQ(files(), 0U);
  EXPECT_TRUE(get(area));
  EXPECT_EQ(fetched, 2);
}

TEST_F(Transit, AMappingHoldsTheFile) {
  const TransitArea area(path, true);
  auto file = get(area);
  void* const mapped = ::mmap(nullptr, kShardBytes, PROT_READ, MAP_SHARED, file->fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  area.give_back("a", std::move(*file));
  const TransitArea other(path, true);
  EXPECT_EQ(files(), 1U);
  auto again = get(other);
  ASSERT_TRUE(again);
  EXPECT_EQ(fetched, 1);
  ::munmap(mapped, kShardBytes);
  other.give_back("a", std::move(*again));
  EXPECT_EQ(files(), 0U);
}

TEST_F(Transit, ManyThreadsFetchEachFileOnce) {
  const TransitArea area(path, true);
  for (int round = 0; round < 20; ++round) {
    fetched = 0;
    std::vector<std::optional<TransitArea::File>> got(6);
    {
      std::vector<std::jthread> threads;
      for (auto& file : got) threads.emplace_back([&] { file = get(area); });
    }
    EXPECT_EQ(fetched, 1);
    for (auto& file : got) {
      ASSERT_TRUE(file);
      area.give_back("a", std::move(*file));
    }
    EXPECT_EQ(files(), 0U);
  }
}

TEST_F(Transit, WhatWasNotFinishedIsFetchedAgain) {
  const TransitArea area(path, true);
  EXPECT_SHARD_ERROR(area.get("a", kShardBytes, [](int) { throw Error(ErrorCode::io, "cut"); }, {}),
                     ErrorCode::io, "cut");
  EXPECT_EQ(files(), 0U);
  std::ofstream(path / ".a.transit") << std::string(kShardBytes + 1, 'x');  // a killed process left it
  EXPECT_TRUE(get(area));
  EXPECT_EQ(fetched, 1);
}

TEST_F(Transit, WhatKilledProcessesLeftIsRemoved) {
  std::filesystem::create_directory(path);
  std::ofstream(path / ".a.transit") << std::string(kShardBytes, 'x');
  std::ofstream(path / "notes.txt") << "mine";
  std::filesystem::create_symlink(path / "notes.txt", path / ".b.transit");
  const TransitArea area(path, false);
  EXPECT_EQ(files(), 2U) << "a link is not ours";
  EXPECT_TRUE(std::filesystem::exists(path / "notes.txt"));
}

// The lock of a killed process may outlive it for a moment.
TEST_F(Transit, WhatWasStillLockedAtTheStartIsRemovedAtTheEnd) {
  std::filesystem::create_directory(path);
  std::ofstream(path / ".a.transit") << std::string(kShardBytes, 'x');
  UniqueFd other(::open((path / ".a.transit").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_SH), 0);
  {
    const TransitArea area(path, false);
    EXPECT_EQ(files(), 1U);
    other.reset();
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(Transit, WaitingEndsWhenItIsStopped) {
  const TransitArea area(path, true);
  std::stop_source stop;
  area.get("a", kShardBytes,
           [&](int) {
             std::jthread other([&] {
               EXPECT_SHARD_ERROR(area.get(
                                      "a", kShardBytes, [](int) {}, stop.get_token()),
                                  ErrorCode::cancelled, "stopped");
             });
             stop.request_stop();
           },
           {});
}

}  // namespace
}  // namespace shard
