// Which inputs a folder has, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "shard/error.hpp"
#include "support/convert/input_folder.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Scan = InputFolder;

TEST_F(Scan, SortsInputsByTheBytesOfTheirPaths) {
  for (const char* name : {"b/1", "a/2", "a-b/3", "Z/4", "\xc3\xa9/5", "a/10"}) write(images_ / name);
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("Z/4", "a-b/3", "a/10", "a/2", "b/1", "\xc3\xa9/5"));
  EXPECT_THAT(list.folders, ElementsAre("Z", "a", "a-b", "b", "\xc3\xa9"));
}

TEST_F(Scan, PassesOverHiddenNamesLitterAndWhatIsNoImage) {
  write(images_ / "a/1.jpg", "no picture, but a name that promises one");
  write(images_ / "a/image");
  for (const char* name :
       {"a/.b.jpg", "a/.git/c.jpg", "__MACOSX/a.jpg", "a/THUMBS.DB", "a/text.txt", "README"})
    write(images_ / name, "GIF, PNG or BM: a text");
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("a/1.jpg", "a/image"));
  EXPECT_THAT(list.folders, ElementsAre("a"));
  EXPECT_TRUE(list.rejects.empty());
  EXPECT_THAT(list.skipped,
              ElementsAre(Skip{"README", SkipReason::no_image}, Skip{"__MACOSX", SkipReason::litter},
                          Skip{"a/.b.jpg", SkipReason::hidden}, Skip{"a/.git", SkipReason::hidden},
                          Skip{"a/THUMBS.DB", SkipReason::litter}, Skip{"a/text.txt", SkipReason::no_image}));
}

TEST_F(Scan, EndsAtALoopOfSymbolicLinks) {
  write(images_ / "a/1");
  fs::create_directory_symlink("..", images_ / "a/up");
  fs::create_symlink("self", images_ / "self");
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("a/1"));
  ASSERT_EQ(list.rejects.size(), 2U);
  EXPECT_EQ(list.rejects[0], (Reject{"a/up", "symbolic link loop"}));
  EXPECT_EQ(list.rejects[1], (Reject{"self", "symbolic link loop"}));
}

TEST_F(Scan, FollowsLinksToFoldersAndRejectsDeadOnes) {
  write(dir_.path() / "elsewhere/1");
  fs::create_directories(images_);
  fs::create_directory_symlink(dir_.path() / "elsewhere", images_ / "linked");
  fs::create_symlink("nowhere", images_ / "dead");
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("linked/1"));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_THAT(list.rejects[0].reason, HasSubstr("No such file"));
}

void expect_same(const InputList& one, const InputList& other) {
  EXPECT_EQ(paths(one), paths(other));
  EXPECT_EQ(one.folders, other.folders);
  EXPECT_EQ(one.empty_folders, other.empty_folders);
  EXPECT_EQ(one.rejects, other.rejects);
  EXPECT_EQ(one.skipped, other.skipped);
}

TEST_F(Scan, GivesTheSameListForAnyNumberOfThreads) {
  for (int folder = 0; folder < 60; ++folder)
    for (int image = 0; image < 7; ++image)
      for (const char* below : {"/", "-b/", "/x/", "/x-y/"})
        write(images_ / ("a" + std::to_string(folder) + below + std::to_string(image) + ".jpg"));
  for (const char* name : {"beside.jpg", "a1.jpg", ".hidden/1.jpg", "z/1.jpg"}) write(images_ / name);
  write(images_ / "a1/text.txt", "a text");
  fs::create_directories(images_ / "empty");
  fs::create_directory_symlink("..", images_ / "a3/up");
  fs::create_directory_symlink("../a5/x", images_ / "a4/link");
  fs::create_directory_symlink("x", images_ / "a6/to-x");
  fs::create_directory_symlink("a7", images_ / "a7-link");
  const InputList one = scan({.images = images_.string(), .jobs = 1});
  EXPECT_EQ(one.inputs.size(), 60U * 7 * 4 + 3 + 7 + 3 * 7);
  EXPECT_EQ(one.rejects.size(), 1U);
  for (const unsigned jobs : {0U, 2U, 16U})
    expect_same(scan({.images = images_.string(), .jobs = jobs}), one);
}

// Threads have more folders open at once than one thread, whose folders are within the limit.
TEST_F(Scan, NeedsNoMoreOpenFilesThanOneThread) {
  std::string nested;
  for (int depth = 0; depth < 30; ++depth) nested += "/d";
  for (int folder = 0; folder < 16; ++folder) {
    write(images_ / (std::to_string(folder) + nested + "/1.jpg"));
    for (int image = 0; image < 200; ++image)
      write(images_ / (std::to_string(folder) + nested + "/" + std::to_string(image) + "-image"));
  }
  const InputList one = scan({.images = images_.string(), .jobs = 1});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  InputList many;
  EXPECT_NO_THROW(many = scan({.images = images_.string(), .jobs = 16}));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  expect_same(many, one);
}

TEST_F(Scan, RefusesAFolderWithoutFilesAndOneThatIsNotThere) {
  fs::create_directories(images_ / "empty");
  EXPECT_SHARD_ERROR(scan({.images = images_.string()}), ErrorCode::invalid_argument, "no images found");
  EXPECT_SHARD_ERROR(scan({.images = (dir_.path() / "none").string()}), ErrorCode::not_found,
                     "no such folder");
}

}  // namespace
}  // namespace shard::convert
