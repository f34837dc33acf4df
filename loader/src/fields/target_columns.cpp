#include "fields/target_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/text/quote.hpp"
#include "codec/sample_errors.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

std::array<float, 4> as_format(const BoxXY& box, BoxFormat format) noexcept {
  const auto f = [](double value) { return static_cast<float>(value); };
  const double width = box.right - box.left;
  const double height = box.bottom - box.top;
  if (format == BoxFormat::xywh) return {f(box.left), f(box.top), f(width), f(height)};
  if (format == BoxFormat::cxcywh)
    return {f((box.left + box.right) / 2), f((box.top + box.bottom) / 2), f(width), f(height)};
  return {f(box.left), f(box.top), f(box.right), f(box.bottom)};
}

bool is_kept(const MovedBox& moved, const BoxOptions& options) noexcept {
  const double width = moved.box.right - moved.box.left;
  const double height = moved.box.bottom - moved.box.top;
  // Edges that are the same number once they are delivered make a box without area.
  if (static_cast<float>(moved.box.left) == static_cast<float>(moved.box.right) ||
      static_cast<float>(moved.box.top) == static_cast<float>(moved.box.bottom))
    return false;
  return width >= options.min_size && height >= options.min_size && width * height >= options.min_area &&
         moved.visible >= options.min_visibility;
}

}  // namespace

TargetColumns::TargetColumns(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset), roles_(dataset.info().columns.size()) {
  const DatasetInfo& info = dataset.info();
  const std::size_t views = view_count(options);
  geometries_.resize(views);
  steps_.resize(views);
  for (std::size_t i = 0; i < info.columns.size(); ++i) {
    const std::string& name = info.columns[i].name;
    if (const auto found = options.boxes.find(name); found != options.boxes.end()) {
      sets_.push_back({i, found->second, {}, 0});
      sets_.back().views.resize(views);
    }
    if (const auto found = options.keypoints.find(name); found != options.keypoints.end())
      roles_[i].keypoints = &found->second;
  }
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    roles_[sets_[set].column].boxes = set;
    for (const std::string& name : *sets_[set].options.along)
      for (std::size_t i = 0; i < info.columns.size(); ++i)
        if (info.columns[i].name == name) roles_[i].boxes = set;
  }
}

void TargetColumns::start_sample(const ShardReader& shard, std::uint64_t sample, std::size_t row) {
  shard_ = &shard;
  sample_ = sample;
  for (std::size_t view = 0; view < views_.size(); ++view) {
    const DrawnSteps& drawn = views_[view];
    const auto steps = drawn.steps.subspan(drawn.begins[row], drawn.begins[row + 1] - drawn.begins[row]);
    Geometry& geometry = geometries_[view];
    geometry.crop = drawn.crops[row];
    geometry.height = drawn.height;
    geometry.width = drawn.width;
    if (drawn.padded) {
      geometry.crop.column = 0;
      geometry.height = geometry.crop.resized_height;
      geometry.width = geometry.crop.resized_width;
    }
    geometry.steps.assign(steps.begin(), steps.end());
    steps_of(geometry, steps_[view]);
  }
  for (BoxSet& set : sets_) {
    shard.read_column(shard.column(dataset_.info().columns[set.column].name), sample, stored_);
    set.count = stored_.size() / sizeof(std::array<float, 4>);
    if (dataset_.info().spec.is_free()) check_boxes(set);
    for (std::size_t view = 0; view < views_.size(); ++view) move_boxes(set, view);
  }
}

// Boxes in stored_ that no pixel of their image touches were made for another size.
void TargetColumns::check_boxes(const BoxSet& set) const {
  const SampleSpec image = shard_->images().spec_of(sample_);
  for (std::uint32_t i = 0; i < set.count; ++i) {
    std::array<float, 4> box{};
    std::memcpy(box.data(), stored_.data() + i * sizeof(box), sizeof(box));
    const bool has_area = box[0] < box[2] && box[1] < box[3];
    const bool outside = box[0] >= static_cast<float>(image.width) ||
                         box[1] >= static_cast<float>(image.height) || box[2] <= 0 || box[3] <= 0;
    if (!has_area || !outside) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: box {} of column {}, ({}, {}, {}, {}), lies outside of its image of {} x {} "
                    "(rows x columns): boxes are xyxy in pixels of the stored sample; store them so, "
                    "or deliver the column as stored (as_stored)",
                    name_of_sample(*shard_, sample_), i, quoted(dataset_.info().columns[set.column].name),
                    box[0], box[1], box[2], box[3], image.height, image.width));
  }
}

// Of the boxes in stored_.
void TargetColumns::move_boxes(BoxSet& set, std::size_t view) {
  BoxSet::View& result = set.views[view];
  result.boxes.clear();
  result.kept.clear();
  for (std::uint32_t i = 0; i < set.count; ++i) {
    std::array<float, 4> box{};
    std::memcpy(box.data(), stored_.data() + i * sizeof(box), sizeof(box));
    const auto moved = move_box(steps_[view], {box[0], box[1], box[2], box[3]});
    if (!moved || !is_kept(*moved, set.options)) continue;
    result.kept.push_back(i);
    const std::array<float, 4> delivered = as_format(moved->box, set.options.format);
    result.boxes.insert(result.boxes.end(), delivered.begin(), delivered.end());
  }
}

void TargetColumns::follow(std::size_t column, std::size_t view, std::vector<std::byte>& rows) {
  const Role& role = roles_[column];
  if (role.boxes) {
    const BoxSet& set = sets_[*role.boxes];
    if (set.column == column) {
      const auto bytes = std::as_bytes(std::span(set.views[view].boxes));
      rows.assign(bytes.begin(), bytes.end());
      return;
    }
    keep_rows(set, column, view, rows);
  }
  if (role.keypoints != nullptr) move_keypoints(*role.keypoints, dataset_.info().columns[column], view, rows);
}

void TargetColumns::keep_rows(const BoxSet& set, std::size_t column, std::size_t view,
                              std::vector<std::byte>& rows) const {
  const std::size_t size = dataset_.info().columns[column].row_bytes();
  if (rows.size() != set.count * size)
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: column {} has {} rows, but there are {} boxes in column {}: leave it out of "
                            "option boxes (along), or convert again",
                            name_of_sample(*shard_, sample_), quoted(dataset_.info().columns[column].name),
                            rows.size() / size, set.count, quoted(dataset_.info().columns[set.column].name)));
  std::size_t next = 0;
  for (const std::uint32_t kept : set.views[view].kept)
    std::memmove(rows.data() + size * next++, rows.data() + size * kept, size);
  rows.resize(size * next);
}

void TargetColumns::move_keypoints(const KeypointOptions& options, const ColumnSpec& column, std::size_t view,
                                   std::vector<std::byte>& rows) const {
  const std::uint64_t numbers = column.row_shape.back();
  const std::size_t size = numbers * sizeof(float);
  for (std::size_t at = 0; at + size <= rows.size(); at += size) {
    std::array<float, 3> point{0, 0, 1};
    std::memcpy(point.data(), rows.data() + at, size);
    const auto moved = point[2] > 0 ? move_point(steps_[view], {point[0], point[1]}) : std::nullopt;
    if (moved)
      point = {static_cast<float>(moved->x), static_cast<float>(moved->y), point[2]};
    else if (numbers == 3)
      point = {};
    else
      point.fill(std::numeric_limits<float>::quiet_NaN());
    std::memcpy(rows.data() + at, point.data(), size);
  }
  if (!mirrors(geometries_[view])) return;
  for (std::size_t row = 0; row < rows.size(); row += column.row_bytes())
    for (const auto& [a, b] : options.swap)
      std::swap_ranges(rows.data() + row + a * size, rows.data() + row + (a + 1) * size,
                       rows.data() + row + b * size);
}

void TargetColumns::write_matrices(float* out) const {
  for (const Geometry& geometry : geometries_)
    for (const double value : matrix_of(geometry)) *out++ = static_cast<float>(value);
}

}  // namespace shard
