// ShardCache and TransitArea, used by eight processes at once, of which some are killed: never more bytes
// than were allowed, never other bytes than those of the shard, and in transit nothing that stays.
// SHARD_TEST_ROUNDS and SHARD_TEST_SEED: how often, and with which random numbers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_io.hpp"
#include "remote/cache/shard_cache.hpp"
#include "remote/cache/transit_area.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

constexpr int kProcesses = 8;
constexpr int kShards = 12;
constexpr int kGets = 14;  // of each process

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

using Random = std::mt19937_64;
std::uint64_t below(Random& random, std::uint64_t end) {
  return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
}

// A shard's size, and each of its bytes, follow from its number.
ShardCache::Entry entry(std::uint64_t number) {
  return {ShardCache::entry_name("https://h/x", number), 1000 + number * 777};
}
std::string content(std::uint64_t number) {
  return std::string(entry(number).size_bytes, static_cast<char>('a' + number));
}
std::string read_whole(int fd) {
  struct stat status {};
  std::string bytes(::fstat(fd, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0, '\0');
  pread_all(fd, std::as_writable_bytes(std::span(bytes)), 0, "file");
  return bytes;
}

// While it lives, nobody takes room or gives a file its name.
class Lock {
 public:
  explicit Lock(const std::filesystem::path& folder)
      : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (::flock(fd_.get(), LOCK_EX) != 0) {
    }
  }

 private:
  UniqueFd fd_;
};

// Of all files.
std::uint64_t bytes_in(const std::filesystem::path& folder) {
  const Lock lock(folder);
  std::uint64_t bytes = 0;
  std::error_code gone;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::uint64_t size = file.file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

enum Code : int { kFine = 0, kOver = 1, kWrong = 2, kFailed = 3, kKilled = 9 };

// One of the processes. `kills`: it ends in the middle of what it does.
int use(const std::filesystem::path& folder, std::uint64_t bound, std::uint64_t seed, bool kills) {
  Random random(seed);
  const std::uint64_t last = kills ? below(random, kGets) : kGets;
  const ShardCache cache(folder, bound);
  for (std::uint64_t turn = 0; turn < kGets; ++turn) {
    const std::uint64_t number = below(random, kShards);
    const auto fetch = [&](int fd) {
      if (bytes_in(folder) > bound) ::_exit(kOver);
      const std::string bytes = content(number);
      const std::size_t half = bytes.size() / 2;
      pwrite_all(fd, std::as_bytes(std::span(bytes)).first(half), 0, "file");
      if (turn == last) ::_exit(kKilled);
      ::usleep(static_cast<useconds_t>(below(random, 2000)));
      pwrite_all(fd, std::as_bytes(std::span(bytes)).subspan(half), half, "file");
    };
    const auto prove = [&](int fd) {
      if (read_whole(fd) != content(number)) throw Error(ErrorCode::corrupt, "other bytes");
    };
    if (const auto copy = cache.get(entry(number), fetch, prove, {}))
      if (read_whole(copy->fd.get()) != content(number)) return kWrong;
    if (bytes_in(folder) > bound) return kOver;
    if (below(random, 10) == 0) {  // as another program may
      const std::uint64_t victim = below(random, kShards);
      std::error_code gone;
      const Lock lock(folder);
      std::filesystem::remove(folder / (entry(victim).name + (turn % 2 == 0 ? "" : ".proof")), gone);
    }
    if (turn == last) return kKilled;
  }
  return cache.problem().empty() ? kFine : kFailed;
}

// Runs `use(number of the process, seed)` in eight processes. Returns their codes.
template <typename Use>
std::vector<int> in_processes(Random& random, Use use) {
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const std::uint64_t seed = random();
    children.push_back(::fork());
    if (children.back() != 0) continue;
    int code = kFailed;
    try {
      code = use(i, seed);
    } catch (...) {
    }
    ::_exit(code);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    const bool over = child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status);
    codes.push_back(over ? WEXITSTATUS(status) : -1);
  }
  return codes;
}

TEST(CacheProcesses, NeverHaveMoreBytesThanTheyMay) {
  Random random(number_of("SHARD_TEST_SEED", 7));
  const testing::TempDir temporary;
  std::uint64_t all = 0;
  for (std::uint64_t number = 0; number < kShards; ++number) all += entry(number).size_bytes + 256;
  const std::uint64_t rounds = number_of("SHARD_TEST_ROUNDS", 12);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto folder = temporary.path() / "cache";
    const std::uint64_t bound = below(random, all + 2000);
    std::filesystem::create_directory(folder);
    const auto codes = in_processes(
        random, [&](int i, std::uint64_t seed) { return use(folder, bound, seed, i < 2 && seed % 2 == 0); });
    for (const int code : codes)
      EXPECT_TRUE(code == kFine || code == kKilled) << "round " << round << ", at most " << bound
                                                    << " bytes: 1 is over, 2 is wrong, 3 is failed: " << code;
    EXPECT_LE(bytes_in(folder), bound) << "round " << round;
    const ShardCache cache(folder, bound);
    for (std::uint64_t number = 0; number < kShards; ++number) {
      const UniqueFd fd = cache.find(entry(number));
      EXPECT_TRUE(!fd || read_whole(fd.get()) == content(number)) << "round " << round;
    }
    std::filesystem::remove_all(folder);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// One of the processes in transit.
int pass(const std::filesystem::path& folder, std::uint64_t seed, bool kills) {
  Random random(seed);
  const std::uint64_t last = kills ? below(random, kGets) : kGets;
  const TransitArea area(folder, true);
  for (std::uint64_t turn = 0; turn < kGets; ++turn) {
    const std::uint64_t number = below(random, 3);
    auto file = area.get(entry(number).name, entry(number).size_bytes,
                         [&](int fd) {
                           const std::string bytes = content(number);
                           pwrite_all(fd, std::as_bytes(std::span(bytes)), 0, "file");
                           ::usleep(static_cast<useconds_t>(below(random, 1000)));
                           if (turn == last) ::_exit(kKilled);
                         },
                         {});
    if (!file) return kFailed;
    if (read_whole(file->fd.get()) != content(number)) return kWrong;
    ::usleep(static_cast<useconds_t>(below(random, 1000)));
    if (read_whole(file->fd.get()) != content(number)) return kWrong;
    if (turn == last) return kKilled;
    area.give_back(entry(number).name, std::move(*file));
  }
  return kFine;
}

TEST(TransitProcesses, ShareWhatPassesAndLeaveNothing) {
  Random random(number_of("SHARD_TEST_SEED", 7));
  const testing::TempDir temporary;
  const auto folder = temporary.path() / "transit";
  const std::uint64_t rounds = number_of("SHARD_TEST_ROUNDS", 12);
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    std::filesystem::create_directory(folder);
    for (const int code : in_processes(
             random, [&](int i, std::uint64_t seed) { return pass(folder, seed, i < 2 && seed % 2 == 0); }))
      EXPECT_TRUE(code == kFine || code == kKilled)
          << "round " << round << ": 2 is wrong, 3 is failed: " << code;
    const TransitArea next(folder, true);  // removes what killed processes have left
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "round " << round;
  }
}

}  // namespace
}  // namespace shard
