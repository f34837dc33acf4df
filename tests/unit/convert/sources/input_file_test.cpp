// An archive that is replaced while it is read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "convert/sources/input_file.hpp"
#include "convert/sources/scan.hpp"
#include "expect_error.hpp"
#include "temp_dir.hpp"

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
  write(folder.path() / "new", 'b');
  std::filesystem::rename(folder.path() / "new", path);
  EXPECT_EQ(reader.read(list.inputs.back()).back(), std::byte{'a'}) << "it is still open";
  InputReader later(list);
  EXPECT_SHARD_ERROR(later.read(list.inputs.front()), ErrorCode::invalid_argument,
                     "was replaced or written to");
}

}  // namespace
}  // namespace shard::convert
