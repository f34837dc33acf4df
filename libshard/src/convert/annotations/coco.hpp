// Annotations in the format of COCO (https://cocodataset.org/#format-data) as columns.
//
//   boxes, box_labels, areas, crowd, keypoints   objects.hpp; a label is the position of the category among
//                                                all, sorted by id
//   captions                                     text, one a line
//
// A column is left out if no annotation has its value.
#pragma once

#include <memory>

#include "convert/annotations/objects.hpp"

namespace shard::convert {

// The annotations of options.coco. The geometry is that of options.preprocess. Errors: invalid_argument (no
// such JSON, an image twice, no annotation of an input, no object of a known category, what options.missing
// refuses), not_found, io; each names the file.
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
  AnnotationTable table(const InputList& list);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::convert
