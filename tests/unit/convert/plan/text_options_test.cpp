// Options as text.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "shard/convert/text_options.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

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

TEST(TextOptions, HaveNoZeroBytes) {
  const std::string cut("x\0y", 3);
  Options options;
  EXPECT_SHARD_ERROR(apply({{"coco", cut}}, options), ErrorCode::invalid_argument,
                     "`coco` \"x\\x00y\": it has a zero byte");
  EXPECT_SHARD_ERROR(apply({{"classes", cut}}, options), ErrorCode::invalid_argument, "zero byte");
  options.out = "out";
  options.images = cut;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`images` \"x\\x00y\" has a zero byte");
  options.images = "x";
  options.classes = {"ant", cut};
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument,
                     "`classes` has a zero byte in \"x\\x00y\", the name of label 1");
}

// One name at every door: what Python calls some_name is --some-name. An option that is given several times
// is named for one value on a command line and for all of them in Python.
TEST(TextOptions, HaveTheNamesOfTheirFlags) {
  EXPECT_GT(text_options().size(), 40U);
  for (const TextOption& option : text_options()) {
    std::string flag = "--" + std::string(option.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (option.several) flag.pop_back();
    EXPECT_EQ(option.flag, flag);
  }
}

TEST(Quality, IsTheLevelOfCodecJpeg) {
  Options options;
  options.images = options.out = "x";
  apply({{"codec", "jpeg"}, {"quality", "90"}}, options);
  EXPECT_EQ(options.codec, (CodecSpec{CodecSpec::Kind::jpeg, 90}));
  EXPECT_EQ(options.preprocess.dtype, DType::u8);
  EXPECT_EQ(options.preprocess.layout, Layout::nhwc);
  apply({{"codec", "jpeg:50"}}, options);
  EXPECT_EQ(options.codec.level, 50);
  apply({{"codec", "jpeg"}}, options);
  EXPECT_EQ(options.codec.level, 95);
}

TEST(Quality, IsRefusedWhereItHasNoMeaning) {
  Options options;
  EXPECT_SHARD_ERROR(apply({{"quality", "90"}}, options), ErrorCode::invalid_argument, "codec jpeg");
  EXPECT_SHARD_ERROR(apply({{"codec", "packed"}, {"quality", "90"}}, options), ErrorCode::invalid_argument,
                     "codec jpeg");
  EXPECT_SHARD_ERROR(apply({{"codec", "jpeg:80"}, {"quality", "90"}}, options), ErrorCode::invalid_argument,
                     "exclude each other");
  for (const char* bad : {"0", "101", "x"})
    EXPECT_SHARD_ERROR(apply({{"codec", "jpeg"}, {"quality", bad}}, options), ErrorCode::invalid_argument,
                       "1 to 100");
}

}  // namespace
}  // namespace shard::convert
