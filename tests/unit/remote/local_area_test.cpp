// LocalArea in a child after fork(): it takes nothing from its parent.
#include "remote/local_area.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "base/file_io.hpp"
#include "remote/remote_folder.hpp"

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

TEST(LocalArea, WhatAChildReleasesStaysForItsParent) {
  LocalArea area;
  const std::uint64_t offset = area.take(8);
  constexpr std::array kBytes{std::byte{7}, std::byte{8}};
  pwrite_all(area.fd(), kBytes, offset, area.folder());
  EXPECT_TRUE(holds_in_child([&] {
    area.release(offset, 8);
    return true;
  }));
  std::array<std::byte, 2> read{};
  pread_all(area.fd(), read, offset, area.folder());
  EXPECT_EQ(read, kBytes);
  area.release(offset, 8);
  pread_all(area.fd(), read, offset, area.folder());
  EXPECT_EQ(read, (std::array<std::byte, 2>{}));
}

TEST(LocalArea, AChildTakesPlacesInAnAreaOfItsOwn) {
  const auto folder = RemoteFolder::open("http://127.0.0.1:1/set");
  const ino_t parents = inode_of(*folder->area());
  EXPECT_EQ(inode_of(*folder->area()), parents);
  EXPECT_TRUE(holds_in_child([&] { return inode_of(*folder->area()) != parents; }));
}

}  // namespace
}  // namespace shard
