#include "remote/shard_cache.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/file_io.hpp"
#include "expect_error.hpp"
#include "temp_dir.hpp"

namespace shard {
namespace {

using testing::TempDir;

constexpr std::uint64_t kSize = 5000;

void fill(int fd, char with) {
  const std::string bytes(kSize, with);
  pwrite_all(fd, std::as_bytes(std::span(bytes)), 0, "file");
}

struct Cache : ::testing::Test {
  TempDir folder;
  ShardCache cache{folder.path() / "cache", 2 * kSize + 1000};  // two shards and their proofs
  int fetched = 0;

  static ShardCache::Entry entry(std::uint64_t digest) {
    return {ShardCache::entry_name("https://h/x", digest), kSize};
  }
  // Fills the file with 'x', and accepts nothing else.
  std::optional<UniqueFd> get(const ShardCache::Entry& of) {
    return cache.get(
        of,
        [&](int fd) {
          ++fetched;
          fill(fd, 'x');
        },
        [&](int fd) {
          std::string bytes(kSize, ' ');
          pread_all(fd, std::as_writable_bytes(std::span(bytes)), 0, "file");
          if (bytes != std::string(kSize, 'x')) throw Error(ErrorCode::corrupt, "not all x");
        },
        {});
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(cache.folder() / name) << text;
  }
};

TEST_F(Cache, AFileIsFetchedOnce) {
  EXPECT_FALSE(cache.has(entry(1)));
  EXPECT_TRUE(get(entry(1)));
  EXPECT_TRUE(get(entry(1)));
  EXPECT_EQ(fetched, 1);
  EXPECT_TRUE(cache.has(entry(1)));
}

TEST_F(Cache, NothingIsRemovedToMakeRoom) {
  EXPECT_TRUE(get(entry(1)));
  EXPECT_TRUE(get(entry(2)));
  EXPECT_FALSE(get(entry(3)));
  EXPECT_EQ(fetched, 2);
  EXPECT_TRUE(cache.has(entry(1)));
  EXPECT_EQ(list_cache(cache.folder()).size(), 2U);
}

TEST_F(Cache, LeavesRoomOnItsDisk) {
  // More than can be free, however much other processes remove meanwhile.
  const std::uint64_t all = std::filesystem::space(folder.path()).capacity;
  const ShardCache full(folder.path() / "full", 100 * kSize, all);
  EXPECT_FALSE(full.get(
      entry(1), [](int) {}, [](int) {}, {}));
  EXPECT_TRUE(list_cache(full.folder()).empty());
}

// As on file systems that cannot take room in advance.
TEST_F(Cache, ADiskThatBecomesFullIsNoError) {
  const auto disk = folder.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here";
  {
    const ShardCache full(disk, 100 * kSize);
    const auto fetch = [&](int fd) {
      std::ofstream others(disk / "others", std::ios::binary);
      const std::vector<char> block(1 << 16);
      while (others.write(block.data(), static_cast<std::streamsize>(block.size()))) others.flush();
      throw_errno("cannot write", "file", fd < 0 ? EBADF : ENOSPC);
    };
    EXPECT_FALSE(full.get(entry(1), fetch, [](int) {}, {}));
    std::filesystem::remove(disk / "others");
    EXPECT_SHARD_ERROR(full.get(
                           entry(1), [](int) { throw Error(ErrorCode::io, "reset"); }, [](int) {}, {}),
                       ErrorCode::io, "reset");
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(Cache, WhatIsInTransitTakesNoRoom) {
  write('.' + entry(7).name + ".transit", std::string(2 * kSize, 'x'));
  EXPECT_TRUE(get(entry(1)));
  const auto files = list_cache(cache.folder());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].state, CacheFile::State::unfinished);
  EXPECT_TRUE(remove_cached(cache.folder(), files[0]));
}

TEST_F(Cache, AFileThatWasChangedIsProvenAgainAndReplaced) {
  get(entry(1));
  write(entry(1).name, std::string(kSize, 'x'));
  EXPECT_FALSE(cache.has(entry(1)));
  EXPECT_TRUE(get(entry(1)));  // proven again
  EXPECT_EQ(fetched, 1);
  std::string changed(kSize, 'x');
  changed.back() = 'y';
  write(entry(1).name, changed);
  EXPECT_TRUE(get(entry(1)));
  EXPECT_EQ(fetched, 2);
  write(entry(1).name, "short");
  EXPECT_TRUE(get(entry(1)));
  EXPECT_EQ(fetched, 3);
}

TEST_F(Cache, LinksAreNotFollowed) {
  write("elsewhere", std::string(kSize, 'x'));
  std::filesystem::create_symlink(cache.folder() / "elsewhere", cache.folder() / entry(1).name);
  EXPECT_TRUE(get(entry(1)));
  EXPECT_EQ(fetched, 1);
  EXPECT_FALSE(std::filesystem::is_symlink(cache.folder() / entry(1).name));
}

TEST_F(Cache, WhatCannotBeProvenIsRemoved) {
  const auto wrong = [](int fd) {
    fill(fd, 'z');
    throw Error(ErrorCode::corrupt, "no");
  };
  EXPECT_SHARD_ERROR(cache.get(entry(1), wrong, [](int) {}, {}), ErrorCode::corrupt, "no");
  EXPECT_TRUE(list_cache(cache.folder()).empty());
}

TEST_F(Cache, OneThreadFetchesAndTheOthersWait) {
  std::vector<std::thread> threads;
  std::atomic<int> fetches{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const auto fd = cache.get(
          entry(1), [&](int) { ++fetches; }, [](int) {}, {});
      EXPECT_TRUE(fd);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fetches, 1);
}

TEST_F(Cache, WaitingEndsWhenItIsStopped) {
  std::stop_source stop;
  cache.get(
      entry(1),
      [&](int) {
        std::jthread other([&] {
          EXPECT_SHARD_ERROR(cache.get(
                                 entry(1), [](int) {}, [](int) {}, stop.get_token()),
                             ErrorCode::cancelled, "stopped");
        });
        stop.request_stop();
      },
      [](int) {}, {});
}

TEST_F(Cache, ForeignFilesStay) {
  write("notes.txt", "mine");
  get(entry(1));
  const auto files = list_cache(cache.folder());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].state, CacheFile::State::proven);
  EXPECT_TRUE(remove_cached(cache.folder(), files[0]));
  EXPECT_EQ(files[1].state, CacheFile::State::foreign);
  EXPECT_FALSE(remove_cached(cache.folder(), files[1]));
  EXPECT_TRUE(std::filesystem::exists(cache.folder() / "notes.txt"));
  EXPECT_FALSE(cache.has(entry(1)));
}

}  // namespace
}  // namespace shard
