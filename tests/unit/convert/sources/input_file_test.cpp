// Archives that are replaced while they are read; files and members to memory of the caller's.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "convert/sources/input_file.hpp"
#include "convert/sources/scan.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

TEST(Archives, ThatAreReplacedWhileTheyAreConvertedEndTheRun) {
  const testing::TempDir folder;
  const std::filesystem::path path = folder.path() / "x.npy";
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 8), }";
  header.resize(117, ' ');
  const auto write = [&](const std::filesystem::path& to, char pixel) {
    std::ofstream(to, std::ios::binary) << std::string("\x93NUMPY\1\0\x76\0", 10) << header << '\n'
                                        << std::string(32, pixel);
  };
  write(path, 'a');
  const InputList list = scan({.images = path.string()});
  InputReader reader(list);
  EXPECT_EQ(reader.read(list.inputs.front()).back(), std::byte{'a'});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a tick of the clock of the file system
  write(folder.path() / "new", 'b');
  std::filesystem::rename(folder.path() / "new", path);
  EXPECT_SHARD_ERROR(reader.read(list.inputs.back()), ErrorCode::invalid_argument,
                     "was replaced or written to");
  InputReader later(list);
  EXPECT_SHARD_ERROR(later.read(list.inputs.front()), ErrorCode::invalid_argument,
                     "was replaced or written to");
}

TEST(InputReader, ReadsToMemoryOfTheSizeThatWasListed) {
  const testing::TempDir folder;
  std::filesystem::create_directories(folder.path() / "images");
  const auto write = [&](const char* bytes) {
    std::ofstream(folder.path() / "images" / "a.jpg", std::ios::binary) << bytes;
  };
  write("12345678");
  const InputList list = scan({.images = (folder.path() / "images").string()});
  InputReader reader(list);
  std::vector<std::byte> out(9, std::byte{'x'});
  EXPECT_TRUE(reader.read_to(list.inputs.front(), std::span(out).first(8)));
  EXPECT_EQ(std::memcmp(out.data(), "12345678x", 9), 0);
  write("1234567");
  EXPECT_FALSE(reader.read_to(list.inputs.front(), std::span(out).first(8)));
  write("123456789");
  EXPECT_FALSE(reader.read_to(list.inputs.front(), std::span(out).first(8)));
  std::filesystem::remove(folder.path() / "images" / "a.jpg");
  EXPECT_SHARD_ERROR(reader.read_to(list.inputs.front(), std::span(out).first(8)), ErrorCode::io,
                     "cannot open");
}

TEST(InputReader, ReadsMembersOfArchivesToMemory) {
  const testing::TempDir folder;
  const std::filesystem::path path = folder.path() / "x.npy";
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 8), }";
  header.resize(117, ' ');
  std::ofstream(path, std::ios::binary) << std::string("\x93NUMPY\1\0\x76\0", 10) << header << '\n'
                                        << std::string(16, 'a') << std::string(16, 'b');
  const InputList list = scan({.images = path.string()});
  InputReader reader(list);
  const auto expected = reader.read(list.inputs.back());
  std::vector<std::byte> wanted(expected.begin(), expected.end());
  std::vector<std::byte> out(wanted.size());
  EXPECT_TRUE(reader.read_to(list.inputs.back(), out));
  EXPECT_EQ(out, wanted);
  out.pop_back();
  EXPECT_FALSE(reader.read_to(list.inputs.back(), out));
}

}  // namespace
}  // namespace shard::convert
