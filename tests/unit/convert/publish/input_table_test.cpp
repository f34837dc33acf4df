// inputs.csv: its rows, and damage to them.
#include <gtest/gtest.h>

#include "convert/publish/input_table.hpp"
#include "support/convert/input_folder.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

TEST(InputTable, HasTheRowsThatWereWritten) {
  const testing::TempDir dir;
  const std::vector<InputRow> rows{{0, "a/\"b\", c.jpg", 7, 0x0123456789abcdefU}, {1, "a/\\x0a.jpg", {}, {}}};
  std::string text = kInputsHeader;
  for (const InputRow& row : rows) text += serialize_row(row);
  write(dir.path() / "out" / kInputsFile, text);
  std::vector<InputRow> found;
  const auto read = [&] {
    found.clear();
    return read_input_rows(dir.path() / "out", nullptr, [&](InputRow&& row) { found.push_back(row); });
  };
  ASSERT_TRUE(read());
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].index, i);
    EXPECT_EQ(found[i].key, rows[i].key);
    EXPECT_EQ(found[i].size_bytes, rows[i].size_bytes);
    EXPECT_EQ(found[i].digest, rows[i].digest);
  }
  for (const std::string& damaged : {text.substr(0, text.size() - 1), text + "x,1\n", text + "x,1,zz\n",
                                     text + "x,-1,\n", text + "\"x,1,\n", std::string("path\n")}) {
    write(dir.path() / "out" / kInputsFile, damaged);
    EXPECT_FALSE(read()) << damaged;
  }
}

}  // namespace
}  // namespace shard::convert
