// Columns of which it cannot be told whether they are places in the sample: boxes, keypoints, masks. The data
// set does not record what they are, and their shape or name is that of such targets. A loader that moves
// pixels refuses to deliver them unmoved by itself.
//
//   by shape   ragged [4], [5], [6], [8]             boxes
//              [4] (not of bool, u8 and i8), [k, 4]  boxes
//              ragged [2], [3]; [k, 2], [k, 3]; floats [2]   points
//              two neighbouring axes of the size of the sample   masks
//   by name    words such as bbox, keypoints, polygon, segmentation, of columns with more than one number for
//              a sample; a text column whose whole name is such a word
//   in pairs   xmin and ymin, x1 and y1, nose_x and nose_y, left and top: single numbers
//
// `labels`, single numbers and vectors of any other length with any other name are never among them, nor
// arrays of one row for each sample whose name says something else: labels, scores, probabilities, colours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shard/dataset_spec.hpp"

namespace shard {

enum class Likeness : std::uint8_t { boxes, points, masks };
std::string_view to_string(Likeness likeness) noexcept;  // "boxes", "points", "masks"

// What column `number` of `columns` looks like. `sample`: the images of the data set.
std::optional<Likeness> looks_like(const std::vector<ColumnSpec>& columns, std::size_t number,
                                   const SampleSpec& sample);

}  // namespace shard
