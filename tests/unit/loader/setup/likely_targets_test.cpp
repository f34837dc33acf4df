#include "setup/likely_targets.hpp"

#include <gtest/gtest.h>

namespace shard {
namespace {

constexpr SampleSpec kSample{DType::u8, Layout::nhwc, 3, 48, 32};

struct Of {
  ColumnSpec column;
  std::optional<Likeness> like;
};

ColumnSpec fixed(const char* name, DType dtype, std::vector<std::uint64_t> row = {}) {
  return {name, dtype, std::move(row), ColumnKind::fixed};
}
ColumnSpec ragged(const char* name, DType dtype, std::vector<std::uint64_t> row = {}) {
  return {name, dtype, std::move(row), ColumnKind::ragged};
}
ColumnSpec text(const char* name) { return {name, DType::u8, {}, ColumnKind::text}; }

void expect(const std::vector<Of>& all) {
  for (const auto& [column, like] : all)
    EXPECT_EQ(looks_like({column}, 0, kSample), like) << column.name << " " << to_string(column);
}

TEST(LikelyTargets, AreToldByTheirShape) {
  expect({{ragged("a", DType::f32, {4}), Likeness::boxes},
          {ragged("a", DType::i64, {5}), Likeness::boxes},
          {ragged("a", DType::f32, {8}), Likeness::boxes},
          {fixed("a", DType::f32, {4}), Likeness::boxes},
          {fixed("a", DType::i32, {100, 4}), Likeness::boxes},
          {ragged("a", DType::f32, {17, 3}), Likeness::points},
          {ragged("a", DType::f64, {2}), Likeness::points},
          {fixed("a", DType::f32, {68, 2}), Likeness::points},
          {fixed("a", DType::f32, {2}), Likeness::points},
          {fixed("a", DType::u8, {48, 32}), Likeness::masks},
          {fixed("a", DType::f32, {3, 48, 32}), Likeness::masks},
          {fixed("a", DType::f32, {48, 32, 3}), Likeness::masks},
          {ragged("a", DType::boolean, {48, 32}), Likeness::masks}});
}

TEST(LikelyTargets, AreToldByTheirName) {
  expect({{ragged("bbox", DType::f32), Likeness::boxes},
          {fixed("leftEyeRect", DType::i64, {7}), Likeness::boxes},
          {fixed("face_landmarks", DType::f32, {136}), Likeness::points},
          {ragged("polygon2", DType::f64), Likeness::points},
          {ragged("segmentation", DType::u32), Likeness::masks},
          {fixed("depth", DType::f32, {24, 16}), Likeness::masks},
          {text("boxes"), Likeness::boxes}});
}

TEST(LikelyTargets, AreCoordinatesThatComeInPairs) {
  const std::vector<ColumnSpec> columns{fixed("labels", DType::i64), fixed("xmin", DType::f32),
                                        fixed("ymin", DType::f32),   fixed("nose_Y", DType::f32),
                                        fixed("nose_x", DType::f32), fixed("x1", DType::i64),
                                        fixed("max", DType::f32),    fixed("may", DType::f32),
                                        fixed("left", DType::i64),   fixed("top", DType::i64)};
  const std::optional<Likeness> point = Likeness::points;
  const std::vector<std::optional<Likeness>> expected{{}, point, point, point, point,
                                                      {}, {},    {},    point, point};
  for (std::size_t i = 0; i < columns.size(); ++i)
    EXPECT_EQ(looks_like(columns, i, kSample), expected[i]) << columns[i].name;
}

TEST(LikelyTargets, AreNotWhatAClassifierHas) {
  expect({{fixed("labels", DType::f32, {4}), {}},
          {fixed("label", DType::i64), {}},
          {fixed("box", DType::i64), {}},
          {fixed("soft_labels", DType::f32, {4}), {}},
          {fixed("class_probs", DType::f32, {2}), {}},
          {fixed("attributes", DType::u8, {40}), {}},
          {fixed("embedding", DType::f16, {768}), {}},
          {fixed("weight", DType::f32), {}},
          {fixed("one_hot", DType::u8, {4}), {}},
          {fixed("tokens", DType::i64, {77}), {}},
          {fixed("features", DType::f32, {197, 768}), {}},
          {ragged("attention_mask", DType::i64), {}},
          {ragged("box_labels", DType::i64), {}},
          {ragged("areas", DType::f32), {}},
          {text("caption"), {}},
          {text("mask_path"), {}},
          {text("box description"), {}}});
}

}  // namespace
}  // namespace shard
