#include "remote/transit_area.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

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

struct Transit : ::testing::Test {
  TempDir folder;
  std::filesystem::path path = folder.path() / "transit";
  std::atomic<int> fetched{0};

  std::optional<UniqueFd> get(const TransitArea& area, const std::string& name = "a") {
    return area.get(name, kSize,
                    [&](int fd) {
                      ++fetched;
                      pwrite_all(fd, std::vector<std::byte>(kSize, std::byte{7}), 0, "file");
                    },
                    {});
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
  EXPECT_EQ(regular_file_size(first->get(), "file"), kSize);
}

TEST_F(Transit, ProcessesShareAFileUntilTheLastOneGivesItBack) {
  const TransitArea area(path, true);
  auto first = get(area);
  auto second = get(area);  // as another process would
  ASSERT_TRUE(first && second);
  EXPECT_EQ(fetched, 1);
  first.reset();
  area.give_back("a");
  EXPECT_EQ(files(), 1U);
  second.reset();
  area.give_back("a");
  EXPECT_EQ(files(), 0U);
  EXPECT_TRUE(get(area));
  EXPECT_EQ(fetched, 2);
}

TEST_F(Transit, AMappingHoldsTheFile) {
  const TransitArea area(path, true);
  auto fd = get(area);
  void* const mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd->get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  fd.reset();
  area.give_back("a");
  const TransitArea other(path, true);
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(get(other));
  EXPECT_EQ(fetched, 1);
  ::munmap(mapped, kSize);
  area.give_back("a");
  EXPECT_EQ(files(), 0U);
}

TEST_F(Transit, ManyThreadsFetchEachFileOnce) {
  const TransitArea area(path, true);
  for (int round = 0; round < 20; ++round) {
    fetched = 0;
    std::vector<std::optional<UniqueFd>> got(6);
    {
      std::vector<std::jthread> threads;
      for (auto& fd : got) threads.emplace_back([&] { fd = get(area); });
    }
    EXPECT_EQ(fetched, 1);
    for (auto& fd : got) EXPECT_TRUE(fd);
    got.clear();
    area.give_back("a");
    EXPECT_EQ(files(), 0U);
  }
}

TEST_F(Transit, WhatWasNotFinishedIsFetchedAgain) {
  const TransitArea area(path, true);
  EXPECT_SHARD_ERROR(area.get("a", kSize, [](int) { throw Error(ErrorCode::io, "cut"); }, {}), ErrorCode::io,
                     "cut");
  EXPECT_EQ(files(), 0U);
  std::ofstream(path / ".a.transit") << std::string(kSize + 1, 'x');  // a killed process left it
  EXPECT_TRUE(get(area));
  EXPECT_EQ(fetched, 1);
}

TEST_F(Transit, WhatKilledProcessesLeftIsRemoved) {
  std::filesystem::create_directory(path);
  std::ofstream(path / ".a.transit") << std::string(kSize, 'x');
  std::ofstream(path / "notes.txt") << "mine";
  std::filesystem::create_symlink(path / "notes.txt", path / ".b.transit");
  const TransitArea area(path, false);
  EXPECT_EQ(files(), 2U) << "a link is not ours";
  EXPECT_TRUE(std::filesystem::exists(path / "notes.txt"));
}

TEST_F(Transit, WaitingEndsWhenItIsStopped) {
  const TransitArea area(path, true);
  std::stop_source stop;
  area.get("a", kSize,
           [&](int) {
             std::jthread other([&] {
               EXPECT_SHARD_ERROR(area.get(
                                      "a", kSize, [](int) {}, stop.get_token()),
                                  ErrorCode::cancelled, "stopped");
             });
             stop.request_stop();
           },
           {});
}

}  // namespace
}  // namespace shard
