#include "remote/cache/shard_cache.hpp"
#include "shard/cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file_io.hpp"
#include "remote/cache/cache_files.hpp"
#include "remote/cache/cache_lock.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

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
  int proven = 0;
  std::uint64_t most = 0;  // bytes_there(), while a file was filled

  std::uint64_t bytes_there() const {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(cache.folder())) bytes += file.file_size();
    return bytes;
  }
  static ShardCache::Entry entry(std::uint64_t digest) {
    return {ShardCache::entry_name("https://h/x", digest), kSize};
  }
  // Fills the file with 'x', and accepts nothing else.
  std::optional<ShardCache::Copy> get(const ShardCache::Entry& of) { return get(of, cache); }
  std::optional<ShardCache::Copy> get(const ShardCache::Entry& of, const ShardCache& from) {
    return from.get(
        of,
        [&](int fd) {
          ++fetched;
          most = std::max(most, bytes_there());
          fill(fd, 'x');
        },
        [&](int fd) {
          ++proven;
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

// The sizes of files that were seen are not remembered: files may go, and those of others may grow.
TEST_F(Cache, CountsWhatIsThereNow) {
  EXPECT_TRUE(get(entry(1)));
  EXPECT_TRUE(get(entry(2)));
  EXPECT_FALSE(get(entry(3)));
  std::filesystem::remove(cache.folder() / entry(1).name);
  EXPECT_TRUE(get(entry(3)));
  EXPECT_FALSE(get(entry(1)));
  std::filesystem::remove(cache.folder() / entry(2).name);
  std::filesystem::remove(cache.folder() / entry(3).name);
  const auto others = cache.folder() / "others";
  std::ofstream(others, std::ios::binary) << "small";
  EXPECT_TRUE(get(entry(1)));
  std::filesystem::resize_file(others, 100 * kSize);
  EXPECT_FALSE(get(entry(2)));
}

TEST_F(Cache, ProofsHaveTheirRoomToo) {
  for (const std::uint64_t missing : {0, 1}) {
    const std::uint64_t bound = 2 * (kSize + kProofBytes) - missing;
    const ShardCache exact(folder.path() / ("exact-" + std::to_string(missing)), bound);
    EXPECT_TRUE(get(entry(1), exact));
    EXPECT_EQ(get(entry(2), exact).has_value(), missing == 0);
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(exact.folder())) bytes += file.file_size();
    EXPECT_LE(bytes, bound);
    for (std::uint64_t n = 1; n <= 2 - missing; ++n) EXPECT_TRUE(exact.has(entry(n)));
  }
}

TEST_F(Cache, ADamagedFileGoesBeforeItsRoomIsTaken) {
  EXPECT_TRUE(get(entry(1)));
  EXPECT_TRUE(get(entry(2)));
  write(entry(1).name, std::string(kSize, 'z'));
  EXPECT_TRUE(get(entry(1)));
  EXPECT_EQ(fetched, 3);
  EXPECT_LE(most, 2 * kSize + 1000);
}

TEST_F(Cache, WhatKilledProcessesLeftMakesRoom) {
  write('.' + entry(7).name + ".part", std::string(2 * kSize, 'x'));
  EXPECT_TRUE(get(entry(1)));
  EXPECT_LE(most, 2 * kSize + 1000);
  EXPECT_EQ(list_cache(cache.folder()).size(), 1U);
}

TEST_F(Cache, APartThatIsBeingFilledStays) {
  const auto part = cache.folder() / ('.' + entry(1).name + ".part");
  EXPECT_TRUE(get(entry(1)));
  write(part.filename(), "x");
  const UniqueFd other(::open(part.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_TRUE(cache.has(entry(1)));
  EXPECT_TRUE(std::filesystem::exists(part));
  ::flock(other.get(), LOCK_UN);
  EXPECT_TRUE(cache.has(entry(1)));
  EXPECT_FALSE(std::filesystem::exists(part));
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

TEST_F(Cache, WhatOthersCanWriteToIsProvenAgainAndNotTrusted) {
  get(entry(1));
  EXPECT_TRUE(get(entry(1))->trusted);
  const auto file = cache.folder() / entry(1).name;
  const auto proof = file.native() + ".proof";
  for (const auto& path : {file, std::filesystem::path(proof)}) {
    ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
    // A proof that says what is there, as its writer could make it.
    if (path == file) {
      std::filesystem::remove(proof);
      EXPECT_FALSE(write_proof(file, open_read(file).get()));
    }
    EXPECT_FALSE(cache.has(entry(1)));
    proven = 0;
    const auto copy = get(entry(1));
    ASSERT_TRUE(copy);
    EXPECT_EQ(proven, 1);
    EXPECT_EQ(copy->trusted, path != file);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    get(entry(1));
    EXPECT_TRUE(cache.has(entry(1)));
  }
  EXPECT_EQ(fetched, 1);
  EXPECT_NE(cache.problem().find("others may write to it"), std::string::npos) << cache.problem();
}

// Runs `check` as another user; `owner` has the files of `shards` in a folder where only
// owners may remove files.
template <typename Check>
int as_nobody_in_sticky(const std::filesystem::path& folder, const std::filesystem::path& file, uid_t owner,
                        Check check) {
  constexpr uid_t kNobody = 65534;
  if (::chmod(folder.c_str(), 01777) != 0 || ::chown(file.c_str(), owner, owner) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(kNobody, kNobody, kNobody) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0)
      ::_exit(77);
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Cache, InAStickyFolderOfOthersNothingIsFetchedInVain) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const auto file = cache.folder() / entry(1).name;
  for (const bool damaged : {false, true}) {
    write(entry(1).name, std::string(kSize, damaged ? 'z' : 'x'));
    const int code = as_nobody_in_sticky(cache.folder(), file, 1, [&] {
      const ShardCache mine(cache.folder(), ShardCache::kUnlimited);
      for (int i = 0; i < 3; ++i) {
        const auto copy = get(entry(1), mine);
        if (fetched != 0 || copy.has_value() == damaged || (copy && copy->trusted)) return false;
      }
      const std::string wanted = damaged ? "cannot be used, and not be removed" : "belongs to another user";
      return mine.problem().find(wanted) != std::string::npos && get(entry(2), mine)->trusted;
    });
    if (code == 77) GTEST_SKIP() << "cannot become another user here";
    EXPECT_EQ(code, 0) << "damaged: " << damaged;
    std::filesystem::remove(cache.folder() / entry(2).name);
    std::filesystem::remove(cache.folder() / (entry(2).name + ".proof"));
  }
}

TEST_F(Cache, APartOfAnotherUserIsNotFilled) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  const auto part = cache.folder() / ('.' + entry(1).name + ".part");
  write(part.filename(), "x");
  ASSERT_EQ(::chown(part.c_str(), 1, 1), 0);
  EXPECT_TRUE(get(entry(1))->trusted);
  EXPECT_TRUE(cache.has(entry(1)));
}

TEST_F(Cache, ALockThatIsNeverGivenBackIsNotWaitedForWithoutEnd) {
  const ShardCache hasty(cache.folder(), ShardCache::kUnlimited, 0, std::chrono::duration<double>(0.1));
  const UniqueFd other(::open(cache.folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_FALSE(get(entry(1), hasty));
  EXPECT_EQ(fetched, 0);
  EXPECT_NE(hasty.problem().find("has the lock of the cache folder"), std::string::npos) << hasty.problem();
  EXPECT_TRUE(list_cache(cache.folder()).empty());
  ::flock(other.get(), LOCK_UN);
  EXPECT_TRUE(get(entry(1), hasty));
}

TEST_F(Cache, APartThatIsLockedAndNotWrittenIsNotWaitedForWithoutEnd) {
  const ShardCache hasty(cache.folder(), ShardCache::kUnlimited, 0, std::chrono::duration<double>(0.1));
  const auto part = cache.folder() / ('.' + entry(1).name + ".part");
  write(part.filename(), "x");
  const UniqueFd other(::open(part.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_FALSE(get(entry(1), hasty));
  EXPECT_NE(hasty.problem().find("has not written to it"), std::string::npos) << hasty.problem();
  EXPECT_TRUE(get(entry(2), hasty));
  ::flock(other.get(), LOCK_UN);
  EXPECT_TRUE(get(entry(1), hasty));
  EXPECT_EQ(fetched, 2);
}

TEST_F(Cache, AChildDoesNotKeepTheLock) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  pid_t child = 0;
  {
    const auto lock = CacheLock::take(cache.folder(), std::chrono::seconds(60), {});
    ASSERT_TRUE(lock);
    EXPECT_FALSE(CacheLock::take(cache.folder(), std::chrono::milliseconds(10), {}));
    child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {  // lives until the parent says so
      ::close(pipe[1]);
      char byte = 0;
      ::_exit(::read(pipe[0], &byte, 1) == 0 ? 0 : 1);
    }
  }
  EXPECT_TRUE(CacheLock::take(cache.folder(), std::chrono::seconds(60), {}));
  ::close(pipe[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(pipe[0]);
}

TEST_F(Cache, WaitingForTheFolderEndsWhenItIsStopped) {
  const auto lock = CacheLock::take(cache.folder(), std::chrono::seconds(60), {});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_SHARD_ERROR(CacheLock::take(cache.folder(), std::chrono::seconds(60), stop.get_token()),
                     ErrorCode::cancelled, "stopped");
}

}  // namespace
}  // namespace shard
