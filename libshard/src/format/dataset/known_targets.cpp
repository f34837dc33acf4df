#include <algorithm>
#include <vector>

#include "shard/dataset.hpp"

namespace shard {

namespace {

bool has_column(const DatasetInfo& info, const char* name, DType dtype,
                const std::vector<std::uint64_t>& row_shape) {
  return std::any_of(info.columns.begin(), info.columns.end(), [&](const ColumnSpec& column) {
    return column.name == name && column.kind == ColumnKind::ragged && column.dtype == dtype &&
           column.row_shape == row_shape;
  });
}

// The columns that conversions of annotations make. Only such conversions record categories.
TargetKinds annotated_targets(const DatasetInfo& info) {
  TargetKinds kinds;
  if (info.provenance.count("categories") == 0) return kinds;
  const bool boxes = has_column(info, "boxes", DType::f32, {4}) &&
                     has_column(info, "box_labels", DType::i64, {}) &&
                     has_column(info, "areas", DType::f32, {}) && has_column(info, "crowd", DType::u8, {});
  if (boxes) kinds["boxes"] = TargetKind::boxes;
  for (const ColumnSpec& column : info.columns)
    if (column.name == "keypoints" && column.kind == ColumnKind::ragged && column.row_shape.size() == 2 &&
        column.row_shape.back() == 3 && fits(TargetKind::keypoints, column))
      kinds["keypoints"] = TargetKind::keypoints;
  return kinds;
}

}  // namespace

std::string_view to_string(TargetKind kind) noexcept {
  return kind == TargetKind::boxes ? "boxes" : "keypoints";
}

std::optional<TargetKind> target_kind_from_string(std::string_view name) noexcept {
  for (const TargetKind kind : {TargetKind::boxes, TargetKind::keypoints})
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

bool fits(TargetKind kind, const ColumnSpec& column) noexcept {
  if (column.dtype != DType::f32 || column.kind == ColumnKind::text) return false;
  const std::vector<std::uint64_t>& row = column.row_shape;
  if (kind == TargetKind::boxes)
    return column.kind == ColumnKind::ragged && row.size() == 1 && row.front() == 4;
  return (row.size() == 1 || row.size() == 2) && (row.back() == 2 || row.back() == 3);
}

TargetKinds known_targets(const DatasetInfo& info) {
  TargetKinds kinds = info.targets;
  kinds.merge(annotated_targets(info));
  return kinds;
}

TargetKinds common_targets(const TargetKinds& a, const TargetKinds& b) {
  TargetKinds both;
  for (const auto& [name, kind] : a)
    if (const auto other = b.find(name); other != b.end() && other->second == kind) both.emplace(name, kind);
  return both;
}

}  // namespace shard
