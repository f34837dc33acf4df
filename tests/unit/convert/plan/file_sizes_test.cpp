#include "convert/plan/file_sizes.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/convert/input_folder.hpp"

namespace shard::convert {
namespace {

std::optional<std::uint64_t> size_in(FileSizes& sizes, const std::string& path) {
  const std::optional<FileSizes::State> state = sizes.state_of(path);
  return state ? std::optional(state->size_bytes) : std::nullopt;
}

namespace fs = std::filesystem;

using FileSizesOf = InputFolder;

TEST_F(FileSizesOf, AFolderAreThoseOfItsFilesInAnyOrder) {
  std::vector<std::string> names;
  for (const char* folder : {"", "a/", "a/b/", "a-b/"})
    for (int i = 0; i < 3; ++i) names.push_back(folder + std::to_string(i));
  for (std::size_t i = 0; i < names.size(); ++i) write(images_ / names[i], std::string(i, 'x'));
  fs::create_symlink("a/2", images_ / "link");
  fs::create_directory_symlink("a", images_ / "to-a");
  for (const std::size_t step : {1U, 5U, 7U}) {
    FileSizes sizes(images_);
    for (std::size_t i = 0; i < 3 * names.size(); ++i) {
      const std::size_t at = i * step % names.size();
      EXPECT_EQ(size_in(sizes, names[at]), at) << names[at];
    }
  }
  FileSizes sizes(images_);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(size_in(sizes, "link"), 5U);
    EXPECT_EQ(size_in(sizes, "to-a/1"), 4U);
    EXPECT_EQ(size_in(sizes, "to-a/2"), 5U);
  }
}

TEST_F(FileSizesOf, WhatIsNoFileAreNothing) {
  write(images_ / "a/1", "1");
  FileSizes sizes(images_);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(size_in(sizes, "a/1"), 1U);
    EXPECT_EQ(size_in(sizes, "a/2"), std::nullopt);
    EXPECT_EQ(size_in(sizes, "a"), std::nullopt);
    EXPECT_EQ(size_in(sizes, "a/"), std::nullopt);
    EXPECT_EQ(size_in(sizes, "none/1"), std::nullopt);
    EXPECT_EQ(size_in(sizes, "a/1/1"), std::nullopt);
  }
}

// As in a list of paths.
TEST_F(FileSizesOf, AnEmptyRootAreThoseOfWholePaths) {
  for (const char* name : {"a/1", "a/2", "a/3"}) write(images_ / name, "12");
  FileSizes sizes({});
  for (const char* name : {"a/1", "a/2", "a/3", "a/2"})
    EXPECT_EQ(size_in(sizes, (images_ / name).string()), 2U);
}

TEST_F(FileSizesOf, AProcessWithoutFreeDescriptorsAreTheSame) {
  for (const char* name : {"a/1", "a/2", "a/3"}) write(images_ / name, "12");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  FileSizes sizes(images_);
  std::vector<std::optional<std::uint64_t>> found;
  for (const char* name : {"a/1", "a/2", "a/3"}) found.push_back(size_in(sizes, name));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(found, (std::vector<std::optional<std::uint64_t>>{2, 2, 2}));
}

}  // namespace
}  // namespace shard::convert
