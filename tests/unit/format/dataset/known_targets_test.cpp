// Columns that are known to be targets.
#include <gtest/gtest.h>

#include "shard/dataset.hpp"
#include "support/format/dataset_text.hpp"

namespace shard {
namespace {

using namespace shard::testing;

// Versions before this one did not record what columns are.
TEST(KnownTargets, AreThoseOfAnnotationsAlsoWhereTheyAreNotRecorded) {
  constexpr ColumnKind kRagged = ColumnKind::ragged;
  DatasetInfo info = example();
  for (const ColumnSpec& column :
       {ColumnSpec{"boxes", DType::f32, {4}, kRagged}, ColumnSpec{"areas", DType::f32, {}, kRagged},
        ColumnSpec{"crowd", DType::u8, {}, kRagged}, ColumnSpec{"keypoints", DType::f32, {17, 3}, kRagged}})
    info.columns.push_back(column);
  info.provenance["categories"] = R"(["cat"])";
  EXPECT_EQ(known_targets(info), (TargetKinds{{"keypoints", TargetKind::keypoints}}))
      << "box_labels is missing";
  info.columns.push_back({"box_labels", DType::i64, {}, kRagged});
  EXPECT_EQ(known_targets(info),
            (TargetKinds{{"boxes", TargetKind::boxes}, {"keypoints", TargetKind::keypoints}}));
  info.provenance.erase("categories");
  EXPECT_EQ(known_targets(info), TargetKinds{});
  EXPECT_EQ(known_targets(example_of_targets()), example_of_targets().targets);
}

TEST(KnownTargets, OfTwoDataSetsAreThoseThatBothKnow) {
  const TargetKinds both{{"a", TargetKind::boxes}, {"b", TargetKind::keypoints}};
  EXPECT_EQ(common_targets(both, both), both);
  EXPECT_EQ(common_targets(both, {{"a", TargetKind::boxes}, {"b", TargetKind::boxes}}),
            (TargetKinds{{"a", TargetKind::boxes}}));
  EXPECT_EQ(common_targets(both, {}), TargetKinds{});
}

}  // namespace
}  // namespace shard
