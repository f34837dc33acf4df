// The inputs of a folder, as programs list and read them.
#include "shard/convert/inputs.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

class InputsTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((dir_.path() / path).parent_path());
    std::ofstream(dir_.path() / path) << text;
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  testing::TempDir dir_;
};

TEST_F(InputsTest, AreThoseOfAConversionInItsOrder) {
  write("b/1.jpg", "one");
  write("a/2.jpg", "two");
  write("a/notes.txt", "");
  const Inputs inputs(dir_.path().string());
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs.root(), dir_.path());
  EXPECT_EQ(inputs.path(0), "a/2.jpg");
  Inputs::Reader reader(inputs);
  EXPECT_EQ(text_of(reader.read(1)), "one");
  EXPECT_EQ(text_of(reader.read(0)), "two");
}

TEST_F(InputsTest, AReaderNeedsNoInputsBesideIt) {
  write("1.jpg", "one");
  std::optional<Inputs> inputs(dir_.path().string());
  Inputs::Reader reader(*inputs);
  inputs.reset();
  EXPECT_EQ(text_of(reader.read(0)), "one");
}

TEST_F(InputsTest, WhatIsGoneIsAnUnreadableInput) {
  write("1.jpg", "one");
  const Inputs inputs(dir_.path().string());
  fs::remove(dir_.path() / "1.jpg");
  Inputs::Reader reader(inputs);
  EXPECT_THROW(reader.read(0), UnreadableInput);
  EXPECT_SHARD_ERROR(Inputs((dir_.path() / "none").string()), ErrorCode::not_found, "none");
}

}  // namespace
}  // namespace shard::convert
