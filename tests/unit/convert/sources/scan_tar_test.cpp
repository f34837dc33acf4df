// Tar archives are listed the same with an index that was kept as without.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "base/files/file_io.hpp"
#include "convert/archives/tar_index_file.hpp"
#include "support/convert/input_folder.hpp"
#include "support/convert/tar_member.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using testing::tar_member;

const std::string kEnd(1024, '\0');

class ScanTar : public InputFolder {
 protected:
  void SetUp() override {
    std::string inner;
    for (int i = 0; i < 300; ++i) inner += tar_member(fmt::format("{}.jpg", i), "x");
    std::string outer = tar_member("n1.tar", inner + kEnd) + tar_member("n2.tar", inner);  // without an end
    for (int i = 0; i < 500; ++i) {
      outer += tar_member(fmt::format("s/{}.jpg", i), "x");
      outer += tar_member(fmt::format("s/{}.cls", i), i == 7 ? "seven" : fmt::format("{}\n", i));
      outer += tar_member(fmt::format("s/{}-image", i), i % 2 == 0 ? kImage : "a text");
    }
    outer += tar_member("../up.jpg", "x") + tar_member("s/3.jpg", "again") + tar_member("s/.hidden.jpg", "x");
    write(archive_, outer + kEnd);
    std::this_thread::sleep_for(std::chrono::milliseconds(3'100));  // an index is not kept before
  }
  InputList list(const std::string& index_folder) const {
    ::setenv("SHARDIFY_INDEX_DIR", index_folder.c_str(), 1);
    InputList found = scan({.images = archive_.string()});
    ::unsetenv("SHARDIFY_INDEX_DIR");
    return found;
  }

  fs::path archive_ = dir_.path() / "a.tar";
  std::string folder_ = (dir_.path() / "index").string();
};

void expect_same_inputs(const InputList& found, const InputList& expected) {
  EXPECT_EQ(paths(found), paths(expected));
  for (std::size_t i = 0; i < found.inputs.size(); ++i) {
    EXPECT_EQ(found.inputs[i].offset, expected.inputs[i].offset);
    EXPECT_EQ(found.inputs[i].size_bytes, expected.inputs[i].size_bytes);
  }
  EXPECT_EQ(found.numbers, expected.numbers);
  EXPECT_EQ(found.unclear_numbers, expected.unclear_numbers);
  EXPECT_EQ(found.rejects, expected.rejects);
  EXPECT_EQ(found.skipped, expected.skipped);
  EXPECT_EQ(found.folders, expected.folders);
}

TEST_F(ScanTar, GivesTheSameListWithAKeptIndex) {
  const InputList without = list("");
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_FALSE(without.rejects.empty());
  EXPECT_FALSE(without.skipped.empty());
  expect_same_inputs(list(folder_), without);
  ASSERT_FALSE(fs::is_empty(folder_));
  expect_same_inputs(list(folder_), without);
}

TEST_F(ScanTar, TakesTheIndexInPlaceOfTheHeaders) {
  const UniqueFd fd = open_read(archive_);
  TarListing listing;
  for (int i = 0; i < 1000; ++i) listing.members.push_back({fmt::format("kept-{}.jpg", i), 512, 1, ""});
  TarIndexWriter index;
  index.add(0, fs::file_size(archive_), listing);
  ASSERT_TRUE(TarIndexFile(folder_, archive_, fd.get()).write(index));
  EXPECT_EQ(list(folder_).inputs.front().path, "kept-0.jpg");
  fs::resize_file(archive_, fs::file_size(archive_) + 512);  // it grows: more zeros behind its end
  EXPECT_EQ(list(folder_).inputs.front().path, "n1/0.jpg");
}

}  // namespace
}  // namespace shard::convert
