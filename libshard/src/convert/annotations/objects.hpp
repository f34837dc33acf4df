// Objects in images (boxes, keypoints) as columns of the samples, in pixels of the stored sample.
//
//   boxes       ragged f32 [4]      left, top, right, bottom, clipped to the sample
//   box_labels  ragged i64          position of the class in the list of all
//   areas       ragged f32          of the object, scaled like its box
//   crowd       ragged u8           1: the box is around many objects, or one that is hard to tell
//   keypoints   ragged f32 [K, 3]   x, y and visibility; zeros where a point is outside
//
// Row k of each column belongs to object k.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/sources/scan.hpp"
#include "shard/target_kinds.hpp"

namespace shard::convert {

// What annotations are for all inputs.
struct AnnotationTable {
  std::vector<ColumnTable> columns;
  TargetKinds targets;  // of these
  // Of each input: the size that its annotations are for, which its image must have. {0, 0}: any.
  std::vector<image::Size> sizes;
  // The names of the classes as a JSON list. Empty: they have none.
  std::string categories;
  AnnotationCounts counts;
};

// From coordinates in an image to pixels of its stored sample. An upright image of size `of` reaches from 0
// to `extent`: its size, or 1 and 1 where coordinates are fractions of it.
struct SampleView {
  double scale_x = 1;
  double scale_y = 1;
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  SampleView(image::Size of, image::Size extent, const image::PreprocessOptions& options);
  double x(double of) const { return of * scale_x - left; }
  double y(double of) const { return of * scale_y - top; }
};

struct ImageObject {
  // Left, top, right, bottom.
  std::array<double, 4> box{};
  // Nothing: that of the box.
  std::optional<double> area;
  std::int64_t label = 0;
  bool crowd = false;
};

// Whether the box reaches more than `slack` beyond an image that reaches from 0 to `width` and `height`.
bool reaches_beyond(const std::array<double, 4>& box, double width, double height, double slack);

// The rows of one image.
struct ObjectRows {
  std::vector<float> boxes;
  std::vector<std::int64_t> labels;
  std::vector<float> areas;
  std::vector<std::uint8_t> crowd;
  std::vector<float> keypoints;

  // False: nothing of the box is in the sample, and nothing was added.
  bool add_box(const ImageObject& object, const SampleView& view);
  // `points`: x, y, visibility of each, or nothing for zeros. `count` of them.
  void add_keypoints(std::span<const float> points, std::uint32_t count, const SampleView& view);
};

// The columns boxes to crowd, then keypoints if there are any.
class ObjectColumns {
 public:
  // `keypoints`: of each object; 0: none.
  ObjectColumns(bool boxes, std::uint32_t keypoints);
  // Of the next input.
  void add(const ObjectRows& rows);
  std::vector<ColumnTable>& tables() noexcept { return tables_; }
  // Which of them are boxes and keypoints.
  TargetKinds targets() const;

 private:
  bool boxes_;
  bool keypoints_;
  std::vector<ColumnTable> tables_;
};

// The names as a JSON list.
std::string category_list(std::span<const std::string> names);

}  // namespace shard::convert
