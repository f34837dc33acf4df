// Annotations from a folder with a file for each image, in the format of YOLO or Pascal VOC,
// as columns (objects.hpp).
//
//   images/ant/1.jpg   labels/ant/1.txt     the same path with the extension of the format
//
// All files are read when the plan is made: their objects are part of it.
#pragma once

#include <memory>

#include "convert/annotations/objects.hpp"

namespace shard::convert {

// The files below options.yolo or options.voc. Errors: invalid_argument (no such folder, no file fits an
// input, a list of names with one twice, what options.missing refuses), corrupt (a file that cannot be used,
// with OnError::fail), io.
class LabelFiles {
 public:
  // `options` must outlive the object.
  explicit LabelFiles(const Options& options);
  LabelFiles(const LabelFiles&) = delete;
  LabelFiles& operator=(const LabelFiles&) = delete;
  ~LabelFiles();
  // Notes what is missing. Inputs without a file leave the list if options.missing says so;
  // those with one that cannot be used become rejects.
  void choose(InputList& list);
  // The columns of the inputs that are left in the end. YOLO's fractions need the sizes of the images, unless
  // options.preprocess squashes them: then each image is looked at.
  AnnotationTable table(const InputList& list);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::convert
