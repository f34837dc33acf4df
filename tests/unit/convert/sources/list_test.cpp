// Inputs of a list of paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shard/error.hpp"
#include "support/convert/input_folder.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

using InputsOfAList = InputFolder;

TEST_F(InputsOfAList, TakesClassesOfAListRelativeToTheDeepestCommonFolder) {
  for (const char* name : {"b/2.jpg", "a/1.jpg", "a/0.jpg"}) write(images_ / name);
  const std::string at = images_.string();
  write(dir_.path() / "list.txt", at + "/b/2.jpg\r\n\n" + at + "/a/1.jpg\n" + at + "/./a/../a/0.jpg\n");
  InputList list = scan({.images = "@" + (dir_.path() / "list.txt").string()});
  EXPECT_EQ(list.root, at + "/");
  EXPECT_THAT(paths(list), ElementsAre("a/0.jpg", "a/1.jpg", "b/2.jpg"));
  EXPECT_THAT(labels_from_folders(list).classes, ElementsAre("a", "b"));
}

TEST_F(InputsOfAList, RefusesAListThatNamesAPathTwiceOrLeavesTheRoot) {
  for (const char* name : {"a/1.jpg", "b/1.jpg"}) write(images_ / name);
  const std::string at = images_.string();
  write(dir_.path() / "twice.txt", at + "/a/1.jpg\n" + at + "/a/1.jpg\n");
  EXPECT_SHARD_ERROR(scan({.images = "@" + (dir_.path() / "twice.txt").string()}),
                     ErrorCode::invalid_argument, "listed twice");
  write(dir_.path() / "outside.txt", at + "/a/1.jpg\n" + at + "/b/1.jpg\n");
  EXPECT_SHARD_ERROR((scan({.images = "@" + (dir_.path() / "outside.txt").string(), .root = images_ / "a"})),
                     ErrorCode::invalid_argument, "not below `root`");
}

}  // namespace
}  // namespace shard::convert
