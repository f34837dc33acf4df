// Draws the targets of samples over their pictures: masks, boxes, keypoints;
// and further images as pictures of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shardctl/dataset/source.hpp"
#include "shardctl/draw/font.hpp"
#include "shardctl/draw/picture.hpp"

namespace shard::ctl {

// The targets of one picture.
struct SampleTargets {
  struct Mask {
    // Not free.
    SampleSpec spec;
    std::vector<std::byte> values;
  };
  // Of each mask field.
  std::vector<Mask> masks;
  // Left, top, right, bottom of each object.
  std::vector<float> boxes;
  // Of each object; empty: they have none.
  std::vector<std::int64_t> labels;
  // x, y, visibility of all points of all objects.
  std::vector<float> keypoints;
};

// Which fields and columns of a data set are drawn:
//
//   fields of role mask    each class in a colour of its own, half transparent; class 0 is left as it is, 255
//                          of u8 becomes white
//   column boxes           ragged f32 [4]: a frame in the colour of box_labels (1 where there is none), with
//                          the name of the class in its upper left corner, if the data set names the classes
//                          of boxes ("categories") and the name's begin fits into it
//   column keypoints       ragged f32 [K, 3]: a dot for each point whose third number is not 0, in the colour
//                          of its position
//   fields of role image   a picture of its own: three channels as they are; one channel from its smallest to
//                          its largest value, where it is not 0
//
// Fields of layout tensor are passed over, and fields of another height or width than the samples. If one of
// the two is free, each sample decides: a mask is drawn if it has the size of its image, and a further image
// has its own size. Const members may be called from several threads at once.
class Overlay {
 public:
  explicit Overlay(const DatasetInfo& info);

  // Nothing is drawn over samples.
  bool empty() const noexcept { return masks_.empty() && boxes_.empty() && keypoints_.empty(); }
  // The names of the further pictures of a sample.
  const std::vector<std::string>& pictures() const noexcept { return names_; }

  // Keypoints of an object.
  std::size_t points() const noexcept { return points_; }

  // Errors: those of Source::read() and ShardReader::read_column().
  SampleTargets read(const Source& source, std::uint64_t index) const;
  // Over the picture of a sample. Lines and letters are `scale` times as large.
  void draw(const SampleTargets& targets, const Canvas& canvas, std::uint32_t scale = 1) const;
  // The picture of a field, pictures()[picture], and what it is.
  void draw_picture(const Source& source, std::uint64_t index, std::size_t picture, Picture& out) const;
  SampleSpec picture_spec(const Source& source, std::uint64_t index, std::size_t picture) const;

 private:
  // The inside of a box in pixels.
  struct Frame {
    std::int64_t left;
    std::int64_t top;
    std::int64_t right;
    std::int64_t bottom;
  };
  void draw_name(const Canvas& canvas, const Frame& frame, std::int64_t label, const Color& color,
                 std::uint32_t scale) const;

  std::vector<FieldSpec> fields_;
  std::vector<std::size_t> masks_;   // positions of fields
  std::vector<std::size_t> images_;  // likewise
  std::vector<std::string> names_;   // of images_
  std::string boxes_;
  std::string labels_;
  std::string keypoints_;
  std::size_t points_ = 0;               // keypoints of an object
  std::vector<std::string> categories_;  // by box_labels
};

}  // namespace shard::ctl
