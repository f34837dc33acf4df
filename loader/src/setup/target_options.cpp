#include "fields/target_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text/quote.hpp"
#include "setup/likely_targets.hpp"
#include "setup/moving_views.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::array<const char*, 4> kAlong{"box_labels", "areas", "crowd", "keypoints"};

[[noreturn]] void refuse_column(const char* option, const std::string& name, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("option {}: column {}: {}", option, quoted(name), why));
}

const ColumnSpec* column_named(const DatasetInfo& info, const std::string& name) {
  const auto found = std::find_if(info.columns.begin(), info.columns.end(),
                                  [&](const ColumnSpec& column) { return column.name == name; });
  return found == info.columns.end() ? nullptr : &*found;
}

const ColumnSpec& require_column(const DatasetInfo& info, const char* option, const std::string& name) {
  const ColumnSpec* const column = column_named(info, name);
  if (column == nullptr) refuse_column(option, name, "the data set has no column of this name");
  return *column;
}

void check_limit(const std::string& column, const char* name, double value, double most) {
  if (!(value >= 0 && value <= most))
    refuse_column("boxes", column, fmt::format("{} is {}; it must be 0 to {}", name, value, most));
}

std::vector<std::string> usual_along(const DatasetInfo& info, const LoaderOptions& options,
                                     const std::string& boxes) {
  std::vector<std::string> along;
  for (const char* const other : kAlong) {
    const ColumnSpec* const there = column_named(info, other);
    if (there != nullptr && there->kind == ColumnKind::ragged && boxes != other &&
        options.as_stored.count(other) == 0)
      along.push_back(other);
  }
  return along;
}

void resolve_boxes(const DatasetInfo& info, LoaderOptions& options, const std::string& name,
                   BoxOptions& boxes) {
  const ColumnSpec& column = require_column(info, "boxes", name);
  if (column.kind != ColumnKind::ragged || column.dtype != DType::f32 ||
      column.row_shape != std::vector<std::uint64_t>{4})
    refuse_column("boxes", name, fmt::format("it is {}; boxes are ragged f32 [4]", to_string(column)));
  if (boxes.format > BoxFormat::cxcywh)
    refuse_column(
        "boxes", name,
        fmt::format("format is {}; it must be xyxy (0), xywh or cxcywh (2)", static_cast<int>(boxes.format)));
  check_limit(name, "min_size", boxes.min_size, 1e6);
  check_limit(name, "min_area", boxes.min_area, 1e12);
  check_limit(name, "min_visibility", boxes.min_visibility, 1);
  if (!boxes.along) {
    boxes.along = usual_along(info, options, name);
    // Points that lose rows must be moved, too.
    if (std::find(boxes.along->begin(), boxes.along->end(), "keypoints") != boxes.along->end())
      options.keypoints.try_emplace("keypoints");
  }
  for (const std::string& other : *boxes.along) {
    if (require_column(info, "boxes", other).kind != ColumnKind::ragged || options.boxes.count(other) != 0)
      refuse_column("boxes", other,
                    fmt::format("it cannot go along with {}: it must be ragged, and no boxes", quoted(name)));
    for (const auto& [set, of] : options.boxes)
      if (set < name && of.along && std::find(of.along->begin(), of.along->end(), other) != of.along->end())
        refuse_column(
            "boxes", other,
            fmt::format("it goes along with {} and {}: name it in one `along`", quoted(set), quoted(name)));
  }
}

bool is_as_stored(const LoaderOptions& options, const std::string& name) {
  return options.as_stored.count(name) != 0 || options.as_stored.count("*") != 0;
}

void check_as_stored(const DatasetInfo& info, const LoaderOptions& options) {
  for (const std::string& name : options.as_stored) {
    if (name == "*") continue;
    static_cast<void>(require_column(info, "as_stored", name));
    if (options.boxes.count(name) != 0 || options.keypoints.count(name) != 0)
      refuse_column("as_stored", name, "it is delivered as boxes or keypoints too: name it once");
    for (const auto& [boxes, of] : options.boxes)
      if (of.along && std::find(of.along->begin(), of.along->end(), name) != of.along->end())
        refuse_column(
            "as_stored", name,
            fmt::format("it goes along with the boxes of {}, which lose rows: name it once", quoted(boxes)));
  }
}

void add_known_targets(const DatasetInfo& info, LoaderOptions& options) {
  for (const auto& [name, kind] : known_targets(info)) {
    if (is_as_stored(options, name) || options.boxes.count(name) != 0 || options.keypoints.count(name) != 0)
      continue;
    if (kind == TargetKind::boxes)
      options.boxes.try_emplace(name);
    else
      options.keypoints.try_emplace(name);
  }
}

// What to do with a column that may have to move.
std::string cure_of(const ColumnSpec& column, Likeness like) {
  const auto named = [&](const char* option, const char* type, const char* are) {
    return fmt::format(
        "If these are {}, name it in option {} (Python: fields={{{}: {}}}), and it moves with the pixels. If "
        "it must not move",
        are, option, quoted(column.name), type);
  };
  std::string cure =
      "Store masks as image fields (shardify --mask; Python: ImageField(role=\"mask\")) and name them in "
      "option fields. "
      "If it is something else";
  if (fits(TargetKind::boxes, column))
    cure = named("boxes", "Boxes()", "x0 y0 x1 y1 in pixels of the stored sample");
  else if (fits(TargetKind::keypoints, column))
    cure = named("keypoints", "Keypoints()", "x and y in pixels of the stored sample");
  else if (like != Likeness::masks)
    cure =
        "Boxes move if they are stored as ragged f32 [4], and points if they are f32 [2], [3], [k, 2] or [k, "
        "3]. If it must not move";
  return fmt::format("{}, name it in as_stored (Python: as_stored=[{}])", cure, quoted(column.name));
}

// Everything is resolved. `what`: what_moves().
void refuse_unknown(const DatasetInfo& info, const LoaderOptions& options, const std::string& what) {
  const ColumnSpec* first = nullptr;
  Likeness like = Likeness::boxes;
  std::string others;
  for (std::size_t i = 0; i < info.columns.size(); ++i) {
    const ColumnSpec& column = info.columns[i];
    if (is_as_stored(options, column.name) || follows_views(column, options)) continue;
    const auto looks = looks_like(info.columns, i, info.spec);
    if (!looks) continue;
    if (first != nullptr) {
      others += (others.empty() ? "; likewise " : ", ") + quoted(column.name);
      continue;
    }
    first = &column;
    like = *looks;
  }
  if (first == nullptr) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "column {} ({}) looks like {}, but the data set does not say what it is, and {}: it cannot be told "
          "whether it must move with the pixels. {}{}",
          quoted(first->name), to_string(*first), to_string(like), what, cure_of(*first, like), others));
}

void check_keypoints(const DatasetInfo& info, const std::string& name, const KeypointOptions& keypoints) {
  const ColumnSpec& column = require_column(info, "keypoints", name);
  const std::size_t axes = column.row_shape.size();
  if (column.kind == ColumnKind::text || column.dtype != DType::f32 || axes < 1 || axes > 2 ||
      column.row_shape.back() < 2 || column.row_shape.back() > 3)
    refuse_column("keypoints", name,
                  fmt::format("it is {}; keypoints are f32 [2], [3], [k, 2] or [k, 3]", to_string(column)));
  const std::uint64_t count = axes == 2 ? column.row_shape[0] : 1;
  for (const auto& [a, b] : keypoints.swap)
    if (a >= count || b >= count)
      refuse_column("keypoints", name, fmt::format("swap has ({}, {}); a row has {} points", a, b, count));
}

}  // namespace

void resolve_target_columns(const DatasetInfo& info, LoaderOptions& options) {
  check_as_stored(info, options);
  const std::optional<std::string> what = what_moves(info, options);
  if (what || options.mix.enabled()) add_known_targets(info, options);
  const bool none = options.boxes.empty() && options.keypoints.empty() && !options.correspondence;
  if (!none && info.spec.is_tensor())
    throw Error(
        ErrorCode::invalid_argument,
        "boxes, keypoints and correspondence: the samples are tensors, which have no pixels to follow");
  for (auto& entry : options.boxes) resolve_boxes(info, options, entry.first, entry.second);
  for (const auto& [name, keypoints] : options.keypoints) check_keypoints(info, name, keypoints);
  if (what) refuse_unknown(info, options, *what);
}

std::map<std::string, std::vector<std::string>> columns_by_boxes(const DatasetInfo& info,
                                                                 const LoaderOptions& options) {
  std::map<std::string, std::vector<std::string>> sets;
  for (const auto& [name, boxes] : options.boxes)
    sets[name] = boxes.along ? *boxes.along : std::vector<std::string>();
  for (const auto& [name, kind] : known_targets(info))
    if (kind == TargetKind::boxes && sets.count(name) == 0 && !is_as_stored(options, name))
      sets[name] = usual_along(info, options, name);
  return sets;
}

bool follows_views(const ColumnSpec& column, const LoaderOptions& options) {
  if (options.boxes.count(column.name) != 0 || options.keypoints.count(column.name) != 0) return true;
  return std::any_of(options.boxes.begin(), options.boxes.end(), [&](const auto& set) {
    return std::find(set.second.along->begin(), set.second.along->end(), column.name) !=
           set.second.along->end();
  });
}

}  // namespace shard
