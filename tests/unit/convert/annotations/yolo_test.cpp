// Files with the objects of one image, as YOLO writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/annotations/label_file.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

using ::testing::ElementsAre;

void expect_box(const LabelledObject& of, double left, double top, double right, double bottom) {
  EXPECT_NEAR(of.object.box[0], left, 1e-12);
  EXPECT_NEAR(of.object.box[1], top, 1e-12);
  EXPECT_NEAR(of.object.box[2], right, 1e-12);
  EXPECT_NEAR(of.object.box[3], bottom, 1e-12);
}

TEST(Yolo, ReadsALineForEachObject) {
  const LabelFile file = parse_yolo("2 0.5 0.25 0.5 0.125\r\n\n \t\n0 0.1 0.1 0.2 0.2", 0);
  ASSERT_EQ(file.objects.size(), 2U);
  expect_box(file.objects[0], 0.25, 0.1875, 0.75, 0.3125);
  expect_box(file.objects[1], 0, 0, 0.2, 0.2);
  EXPECT_EQ(file.objects[0].object.label, 2);
  EXPECT_EQ(file.size, image::Size{});
  EXPECT_TRUE(parse_yolo("", 0).objects.empty());
}

TEST(Yolo, ReadsKeypointsWithAndWithoutVisibility) {
  const LabelFile three = parse_yolo("1 0.5 0.5 1 1 0.25 0.5 1 0 0 0", 2);
  EXPECT_THAT(three.objects.at(0).keypoints, ElementsAre(0.25F, 0.5F, 1.0F, 0.0F, 0.0F, 0.0F));
  const LabelFile two = parse_yolo("1 0.5 0.5 1 1 0.25 0.5 0 0", 2);
  EXPECT_THAT(two.objects.at(0).keypoints, ElementsAre(0.25F, 0.5F, 2.0F, 0.0F, 0.0F, 0.0F));
}

TEST(Yolo, CountsBoxesWithoutArea) {
  const LabelFile file = parse_yolo("0 0.5 0.5 0 1\n0 0.5 0.5 1 1\n0 0.5 0.5 1 -0.001", 0);
  EXPECT_EQ(file.objects.size(), 1U);
  EXPECT_EQ(file.invalid_boxes.number, 2U);
  EXPECT_EQ(file.invalid_boxes.first, "line 1: a box of 0 x 1");
}

TEST(Yolo, RefusesWhatIsNoBoxWithLineAndRule) {
  const auto refused = [](std::string_view text, std::uint32_t keypoints, const char* why) {
    EXPECT_SHARD_ERROR(parse_yolo(text, keypoints), ErrorCode::corrupt, why);
  };
  refused("0 0.5 0.5 1 1\n0 0.5 0.5 inf 1", 0, "line 2: \"inf\" is not a finite number");
  refused("0 0.5 0.5 1", 0, "line 1: 4 numbers: 5 are needed");
  refused("0 0.5 0.5 1 1 0.9", 0, "line 1: 6 numbers: 5 are needed, class cx cy w h");
  refused("0 0.1 0.1 0.2 0.1 0.2 0.2", 0, "polygons");
  refused("0 0.5 0.5 1 1", 17, "39 or 56 are needed for 17 keypoints");
  refused("0 0.5 1.2 1 1", 0, "cy is 1.2: a fraction of the image");
  refused("0 0.5 0.5 1 1 0.5 7 2", 1, "y of a keypoint is 7");
  refused("1.5 0.5 0.5 1 1", 0, "class 1.5: a whole number");
  refused("1e300 0.5 0.5 1 1", 0, "a whole number from 0 on");
}

}  // namespace
}  // namespace shard::convert
