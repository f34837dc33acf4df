// Which inputs a folder has, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "input_folder.hpp"
#include "shard/error.hpp"

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

TEST_F(Scan, RefusesAFolderWithoutFilesAndOneThatIsNotThere) {
  fs::create_directories(images_ / "empty");
  EXPECT_SHARD_ERROR(scan({.images = images_.string()}), ErrorCode::invalid_argument, "no images found");
  EXPECT_SHARD_ERROR(scan({.images = (dir_.path() / "none").string()}), ErrorCode::not_found,
                     "no such folder");
}

}  // namespace
}  // namespace shard::convert
