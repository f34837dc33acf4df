// Files with the objects of one image: YOLO's text files and Pascal VOC's XML. Pure functions of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convert/annotations/objects.hpp"

namespace shard::convert {

inline constexpr std::uint64_t kMaxLabelFileBytes = std::uint64_t{16} << 20;
inline constexpr std::uint32_t kMaxKeypoints = 1000;

struct LabelledObject {
  ImageObject object;
  // Of the class, where the file has names (VOC). object.label is then 0.
  std::string name;
  // x, y, visibility of each.
  std::vector<float> keypoints;
};

struct LabelFile {
  // The size that the file states. {0, 0}: none.
  image::Size size;
  // The image that the file names (VOC). Empty: none.
  std::string filename;
  // Boxes without area are not among them.
  std::vector<LabelledObject> objects;
  AnnotationCounts::Count invalid_boxes;
};

// YOLO: a line for each object, "class cx cy w h": fractions of width and height. With `keypoints`, that many
// points follow: "x y" or "x y visibility" each. Coordinates are left in fractions. Errors: corrupt, naming
// line, value and rule.
LabelFile parse_yolo(std::string_view text, std::uint32_t keypoints);

// Pascal VOC. Its boxes count pixels from 1 and include the last; here the first pixel reaches from 0 to 1.
// `difficult` makes `crowd`. Entities of a DOCTYPE are never expanded: a file with one is refused.
// Errors: corrupt, naming line or object, value and rule.
LabelFile parse_voc(std::string_view text);

}  // namespace shard::convert
