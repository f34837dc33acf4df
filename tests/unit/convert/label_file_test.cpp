// Files with the objects of one image, as YOLO and Pascal VOC write them.
#include "convert/annotations/label_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"

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

constexpr std::string_view kDog =
    "<annotation><size><width>48</width><height>40</height><depth>3</depth></size><object><name>dog</name>"
    "<difficult>1</difficult><bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>48</xmax><ymax>40</ymax></bndbox>"
    "<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part></object></annotation>";

TEST(Voc, CountsPixelsFromOneAndIncludesTheLast) {
  const LabelFile file = parse_voc(kDog);
  ASSERT_EQ(file.objects.size(), 1U);
  expect_box(file.objects[0], 0, 1.5, 48, 40);
  EXPECT_EQ(file.objects[0].name, "dog");
  EXPECT_TRUE(file.objects[0].object.crowd);
  EXPECT_EQ(file.size, (image::Size{48, 40}));
}

TEST(Voc, ReadsOtherEncodingsAsUtf8) {
  std::string text(kDog);
  text.replace(text.find("dog"), 3, "ch\xE4t");
  EXPECT_EQ(parse_voc("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>" + text).objects.at(0).name,
            "ch\xC3\xA4t");
  EXPECT_SHARD_ERROR(parse_voc(text), ErrorCode::corrupt, "no XML");
}

TEST(Voc, RefusesADoctypeBeforeItsEntitiesAreUsed) {
  EXPECT_SHARD_ERROR(
      parse_voc("<!DOCTYPE a [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><annotation>&b;</annotation>"),
      ErrorCode::corrupt, "DOCTYPE");
  EXPECT_SHARD_ERROR(parse_voc("<annotation>&nothing;</annotation>"), ErrorCode::corrupt, "no XML");
}

TEST(Voc, RefusesElementsThatAreNotInOrder) {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string text(kDog);
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_SHARD_ERROR(parse_voc(changed("<xmin>1</xmin>", "")), ErrorCode::corrupt,
                     "object 1 (\"dog\") has no xmin in its bndbox");
  EXPECT_SHARD_ERROR(parse_voc(changed("<xmin>1</xmin>", "<xmin>1</xmin><xmin>1</xmin>")), ErrorCode::corrupt,
                     "has two xmin");
  EXPECT_SHARD_ERROR(parse_voc(changed(">48</xmax>", ">NaN</xmax>")), ErrorCode::corrupt, "xmax is \"NaN\"");
  EXPECT_SHARD_ERROR(parse_voc(changed(">48</xmax>", ">4e9</xmax>")), ErrorCode::corrupt, "xmax is \"4e9\"");
  EXPECT_SHARD_ERROR(parse_voc(changed("<width>48", "<width>4 8")), ErrorCode::corrupt, "size \"4 8\"");
  const LabelFile inverted = parse_voc(changed(">48</xmax>", ">0</xmax>"));
  EXPECT_TRUE(inverted.objects.empty());
  EXPECT_EQ(inverted.invalid_boxes.number, 1U);
}

}  // namespace
}  // namespace shard::convert
