// Rows of a column as text.
#include <gtest/gtest.h>

#include "convert/sources/column_table.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

TEST(Columns, RowsAreParsedByTheirType) {
  const auto bytes = [](const ColumnSpec& column, std::string_view field) {
    std::vector<int> values;
    for (const std::byte b : parse_rows(column, field)) values.push_back(std::to_integer<int>(b));
    return values;
  };
  using Values = std::vector<int>;
  EXPECT_EQ(bytes({"x", DType::u8, {}}, "255"), (Values{255}));
  EXPECT_EQ(bytes({"x", DType::i16, {2}}, " -2  +1 "), (Values{254, 255, 1, 0}));
  EXPECT_EQ(bytes({"x", DType::f32, {}}, "1.5"), (Values{0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(bytes({"x", DType::f16, {}}, "1.5"), (Values{0, 0x3e}));
  EXPECT_EQ(bytes({"x", DType::bf16, {}}, "1.5"), (Values{0xc0, 0x3f}));
  EXPECT_EQ(bytes({"x", DType::f64, {}}, "-2"), (Values{0, 0, 0, 0, 0, 0, 0, 0xc0}));
  EXPECT_EQ(bytes({"x", DType::boolean, {2}}, "true 0"), (Values{1, 0}));
  EXPECT_EQ(bytes({"x", DType::u8, {2}, ColumnKind::ragged}, ""), (Values{}));
  EXPECT_EQ(bytes({"x", DType::u8, {2}, ColumnKind::ragged}, "1 2 3 4"), (Values{1, 2, 3, 4}));
  EXPECT_EQ(bytes({"x", DType::u8, {}, ColumnKind::text}, " a\n"), (Values{32, 97, 10}));
  const auto refused = [&](const ColumnSpec& column, std::string_view field, const char* why) {
    EXPECT_SHARD_ERROR(parse_rows(column, field), ErrorCode::invalid_argument, why);
  };
  for (const char* bad : {"256", "-1", "-0", "1.0", "1.5", "x", "1x", "0x1"})
    refused({"x", DType::u8, {}}, bad, "not a whole number of 0 to 255 without a point: the type is u8");
  refused({"x", DType::i8, {}}, "128", "not a whole number of -128 to 127");
  for (const char* bad : {"nan", "inf", "1e39", "1,5"})
    refused({"x", DType::f32, {}}, bad, "not a finite number: the type is f32");
  refused({"x", DType::f16, {}}, "65520", "not a finite number: the type is f16");
  refused({"x", DType::boolean, {}}, "2", "not true, false, 1 or 0");
  refused({"x", DType::boolean, {}}, "True", "\"True\" is not true, false, 1 or 0");
  refused({"x", DType::f32, {}}, "", "0 numbers: 1 are needed");
  refused({"x", DType::f32, {3}}, "1 2", "2 numbers: 3 are needed");
  refused({"x", DType::f32, {2}, ColumnKind::ragged}, "1 2 3", "3 numbers: a multiple of 2 are needed");
  refused({"x", DType::u8, {}, ColumnKind::text}, "\xc3", "not UTF-8");
}

}  // namespace
}  // namespace shard::convert
