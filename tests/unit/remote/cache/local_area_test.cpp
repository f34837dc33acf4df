// LocalArea in a child after fork(): it takes nothing from its parent.
#include "remote/cache/local_area.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "base/files/file_io.hpp"
#include "remote/s3/remote_folder.hpp"

namespace shard {
namespace {

ino_t inode_of(const LocalArea& area) {
  struct stat status {};
  EXPECT_EQ(::fstat(area.fd(), &status), 0);
  return status.st_ino;
}

// Whether `holds` does so in a child.
template <typename Check>
bool holds_in_child(Check holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

constexpr std::array kBytes{std::byte{7}, std::byte{8}};

// An area with kBytes at its beginning.
void fill(LocalArea& area) {
  ASSERT_EQ(area.take(8), 0U);
  pwrite_all(area.fd(), kBytes, 0, area.folder());
}
std::array<std::byte, 2> content(const LocalArea& area) {
  std::array<std::byte, 2> read{};
  pread_all(area.fd(), read, 0, area.folder());
  return read;
}

TEST(LocalArea, GivesSpaceBack) {
  LocalArea area;
  fill(area);
  area.release(0, 8);
  EXPECT_EQ(content(area), (std::array<std::byte, 2>{}));
}

TEST(LocalArea, UsesPlacesAgain) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  LocalArea area;
  const std::uint64_t first = area.take(3 * kMiB);
  const std::uint64_t second = area.take(1);
  const std::uint64_t third = area.take(2 * kMiB);
  const std::uint64_t last = area.take(1);
  EXPECT_EQ(last, 6 * kMiB);
  area.release(first, 3 * kMiB);
  EXPECT_EQ(area.take(kMiB), first);
  EXPECT_EQ(area.take(4 * kMiB), 7 * kMiB) << "larger than what is free";
  area.release(third, 2 * kMiB);
  area.release(second, 1);  // between two that are free: they become one
  EXPECT_EQ(area.take(5 * kMiB), first + kMiB);
  EXPECT_EQ(area.take(kMiB), 11 * kMiB);
}

// More in all than a file of most file systems can have.
TEST(LocalArea, DoesNotGrowWithWhatCameAndWent) {
  LocalArea area;
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 40U;
  for (int i = 0; i < 100; ++i) area.release(area.take(kLarge), kLarge);
  EXPECT_EQ(area.take(1), 0U);
}

TEST(LocalArea, APlaceIsNotUsedAgainWhereAChildMayReadIt) {
  LocalArea area;
  fill(area);
  EXPECT_TRUE(holds_in_child([] { return true; }));
  area.release(0, 8);
  EXPECT_NE(area.take(8), 0U);
}

TEST(LocalArea, WhatAChildReleasesStaysForItsParent) {
  LocalArea area;
  fill(area);
  EXPECT_TRUE(holds_in_child([&] {
    area.release(0, 8);
    return true;
  }));
  EXPECT_EQ(content(area), kBytes);
}

TEST(LocalArea, WhatAParentReleasesStaysForItsChildren) {
  LocalArea area;
  fill(area);
  EXPECT_TRUE(holds_in_child([] { return true; }));
  area.release(0, 8);
  EXPECT_EQ(content(area), kBytes);
  LocalArea later;  // no child knows it
  fill(later);
  later.release(0, 8);
  EXPECT_EQ(content(later), (std::array<std::byte, 2>{}));
}

TEST(LocalArea, AChildTakesPlacesInAnAreaOfItsOwn) {
  const auto folder = RemoteFolder::open("http://127.0.0.1:1/set");
  const ino_t parents = inode_of(*folder->area());
  EXPECT_EQ(inode_of(*folder->area()), parents);
  EXPECT_TRUE(holds_in_child([&] { return inode_of(*folder->area()) != parents; }));
}

}  // namespace
}  // namespace shard
