// Annotations in the format of COCO (https://cocodataset.org/#format-data) as columns.
//
//   boxes       ragged f32 [4]      left, top, right, bottom in pixels of the stored sample, clipped to it
//   box_labels  ragged i64          position of the category among all, sorted by id
//   areas       ragged f32          of the object, scaled like its box
//   crowd       ragged u8           1: the box is around many objects
//   keypoints   ragged f32 [K, 3]   x, y in pixels of the stored sample, and visibility; zeros where it is outside
//   captions    text                one a line
//
// Row k of each ragged column belongs to object k. A column is left out if no annotation has its value.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convert/scan.hpp"

namespace shard::convert {

struct CocoTable {
  std::vector<ColumnTable> columns;
  // Of each input: the size that the file states, which its image must have. {0, 0}: the file does not name the image.
  std::vector<image::Size> sizes;
  // The names of the categories as a JSON list.
  std::string categories;
  AnnotationCounts counts;
};

// The annotations of options.coco. The geometry is that of options.preprocess. Errors: invalid_argument (no such JSON, an image
// twice, what options.missing refuses), not_found, io; each names the file.
class CocoAnnotations {
 public:
  // `options` must outlive the object.
  explicit CocoAnnotations(const Options& options);
  CocoAnnotations(const CocoAnnotations&) = delete;
  CocoAnnotations& operator=(const CocoAnnotations&) = delete;
  ~CocoAnnotations();
  // Notes what is missing. Inputs without annotations leave the list if options.missing says so.
  void choose(InputList& list);
  // The columns of the inputs that are left in the end.
  CocoTable table(const InputList& list);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::convert
