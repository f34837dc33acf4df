// Each key becomes a file of its own below the folder, or an error names it.
#include "shardctl/dataset/file_names.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/expect_error.hpp"

namespace shard::ctl {
namespace {

FileNames names_of(const std::vector<std::string>& keys) {
  FileNames names;
  for (const std::string& key : keys) names.add(key);
  return names;
}

TEST(FileNames, InputsKeepTheirNamesAndOthersGetOneOfAJpeg) {
  FileNames names = names_of({"a/1.png", "a/2.png", "a/3.JPG", "4", "line\\x0afeed", "a/1.png/5.jpg"});
  EXPECT_EQ(names.name_of("a/2.png", true), "a/2.png");
  EXPECT_EQ(names.name_of("a/1.png", false), "a/1.png.jpg");
  EXPECT_EQ(names.name_of("a/3.JPG", false), "a/3.JPG");
  EXPECT_EQ(names.name_of("4", true), "4");
  EXPECT_EQ(names.name_of("line\\x0afeed", true), "line\nfeed");
}

TEST(FileNames, TwoKeysOfOneFileAreRefusedBeforeItIsWritten) {
  for (const auto& [first, second] : {std::pair("a/1.jpg", "a/1.jpg"), std::pair("a/1.jpg", "a//1.jpg"),
                                      std::pair("a///1.jpg", "a//1.jpg")})
    EXPECT_SHARD_ERROR(names_of({first, second}), ErrorCode::unsupported,
                       "\"a/1.jpg\", as that of another sample");
}

TEST(FileNames, TheNameOfAnEncodedImageIsNotThatOfAnotherFile) {
  FileNames names = names_of({"a.png", "a.png.jpg"});
  EXPECT_EQ(names.name_of("a.png", false), "a.png.jpg");
  EXPECT_SHARD_ERROR(names.name_of("a.png.jpg", true), ErrorCode::unsupported, "as that of another sample");
}

TEST(FileNames, AFileIsNotAFolder) {
  FileNames names = names_of({"a", "a/b/c.jpg", "a/b"});
  EXPECT_SHARD_ERROR(names.name_of("a", true), ErrorCode::unsupported, "the folder of other keys");
  EXPECT_SHARD_ERROR(names.name_of("a/b", true), ErrorCode::unsupported, "the folder of other keys");
  EXPECT_EQ(names.name_of("a", false), "a.jpg");
}

TEST(FileNames, NoKeyLeadsOutOfTheFolder) {
  for (const char* key : {"", "/a.jpg", "../a.jpg", "a/../b.jpg", "a/./b.jpg", "a/", "..", "a\\x00.jpg"})
    EXPECT_SHARD_ERROR(names_of({key}), ErrorCode::unsupported, "no path inside of a folder");
}

}  // namespace
}  // namespace shard::ctl
