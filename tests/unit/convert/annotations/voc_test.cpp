// Files with the objects of one image, as Pascal VOC writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/annotations/label_file.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kDog =
    "<annotation><size><width>48</width><height>40</height><depth>3</depth></size><object><name>dog</name>"
    "<difficult>1</difficult><bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>48</xmax><ymax>40</ymax></bndbox>"
    "<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part></object></annotation>";

TEST(Voc, CountsPixelsFromOneAndIncludesTheLast) {
  const LabelFile file = parse_voc(kDog);
  ASSERT_EQ(file.objects.size(), 1U);
  EXPECT_THAT(file.objects[0].object.box, ElementsAre(0, 1.5, 48, 40));
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
