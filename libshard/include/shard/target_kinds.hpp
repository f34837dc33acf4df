// TargetKind: what the numbers of a column are, if that is known. dataset.json records it; shards do not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "shard/dataset_spec.hpp"

namespace shard {

// Places in the sample, which must move with its pixels.
enum class TargetKind : std::uint8_t {
  // Ragged f32 [4]: x0 y0 x1 y1, in pixels of the stored sample.
  boxes,
  // f32 [2], [3], [k, 2] or [k, 3]: x, y and visibility, in pixels of the stored sample.
  keypoints,
};
std::string_view to_string(TargetKind kind) noexcept;  // "boxes", "keypoints"
std::optional<TargetKind> target_kind_from_string(std::string_view name) noexcept;
// Whether a column of this kind may have this data type and shape.
bool fits(TargetKind kind, const ColumnSpec& column) noexcept;
// By name of the column.
using TargetKinds = std::map<std::string, TargetKind>;

// What both know alike: of two data sets put together.
TargetKinds common_targets(const TargetKinds& a, const TargetKinds& b);

}  // namespace shard
