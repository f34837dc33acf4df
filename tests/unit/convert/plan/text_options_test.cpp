// Options as text.
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/error.hpp"

namespace shard::convert {
namespace {

TEST(Columns, AreWrittenAsText) {
  const auto parsed = [](const std::string& text) {
    Options options;
    apply({{"columns", text}}, options);
    return options.columns.at(0);
  };
  constexpr ColumnKind kRagged = ColumnKind::ragged;
  EXPECT_EQ(parsed("caption:text"), (ColumnSpec{"caption", DType::u8, {}, ColumnKind::text}));
  EXPECT_EQ(parsed("a:b:float32"), (ColumnSpec{"a:b", DType::f32, {}}));
  EXPECT_EQ(parsed("pose:f16[2,3]"), (ColumnSpec{"pose", DType::f16, {2, 3}}));
  EXPECT_EQ(parsed("ids:i64[]"), (ColumnSpec{"ids", DType::i64, {}, kRagged}));
  EXPECT_EQ(parsed("boxes:f32[,4]"), (ColumnSpec{"boxes", DType::f32, {4}, kRagged}));
  EXPECT_EQ(parsed("points:f32[,17,3]"), (ColumnSpec{"points", DType::f32, {17, 3}, kRagged}));
  for (const char* bad :
       {"", "x", ":text", "x:", "x:word", "x:f32[", "x:f32[0]", "x:f32[3", "x:f32[3,]", "x:f32[,]",
        "x:f32[a]", "x:f32[-1]", "x:f32[3]4", "x:text[3]", "x:f32[99999999999999999999]"})
    EXPECT_SHARD_ERROR(parsed(bad), ErrorCode::invalid_argument, "expected NAME:TYPE");
}

}  // namespace
}  // namespace shard::convert
