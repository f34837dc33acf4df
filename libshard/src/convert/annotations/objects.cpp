#include "convert/annotations/objects.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json.hpp"

namespace shard::convert {

SampleView::SampleView(image::Size of, image::Size extent, const image::PreprocessOptions& options) {
  const image::Size resized = image::resized_size(of, options);
  const image::Box crop = image::crop_box(resized, options);
  scale_x = static_cast<double>(resized.width) / extent.width;
  scale_y = static_cast<double>(resized.height) / extent.height;
  left = crop.left;
  top = crop.top;
  width = crop.width;
  height = crop.height;
}

bool reaches_beyond(const std::array<double, 4>& box, double width, double height, double slack) {
  return box[0] < -slack || box[1] < -slack || box[2] > width + slack || box[3] > height + slack;
}

bool ObjectRows::add_box(const ImageObject& object, const SampleView& view) {
  const auto& [left, top, right, bottom] = object.box;
  const std::array<float, 4> box{static_cast<float>(std::clamp(view.x(left), 0.0, view.width)),
                                 static_cast<float>(std::clamp(view.y(top), 0.0, view.height)),
                                 static_cast<float>(std::clamp(view.x(right), 0.0, view.width)),
                                 static_cast<float>(std::clamp(view.y(bottom), 0.0, view.height))};
  if (!(box[0] < box[2] && box[1] < box[3])) return false;
  boxes.insert(boxes.end(), box.begin(), box.end());
  labels.push_back(object.label);
  const double area = object.area.value_or((right - left) * (bottom - top));
  areas.push_back(static_cast<float>(area * view.scale_x * view.scale_y));
  crowd.push_back(object.crowd ? 1 : 0);
  return true;
}

void ObjectRows::add_keypoints(std::span<const float> points, std::uint32_t count, const SampleView& view) {
  for (std::size_t k = 0; k < count; ++k) {
    std::array<float, 3> point{};
    if (!points.empty()) {
      const std::span<const float> of = points.subspan(3 * k, 3);
      const double x = view.x(static_cast<double>(of[0]));
      const double y = view.y(static_cast<double>(of[1]));
      const bool inside = x >= 0 && x <= view.width && y >= 0 && y <= view.height;
      if (of[2] != 0 && inside) point = {static_cast<float>(x), static_cast<float>(y), of[2]};
    }
    keypoints.insert(keypoints.end(), point.begin(), point.end());
  }
}

ObjectColumns::ObjectColumns(bool boxes, std::uint32_t keypoints)
    : boxes_(boxes), keypoints_(keypoints != 0) {
  constexpr ColumnKind kRagged = ColumnKind::ragged;
  if (boxes) {
    tables_.emplace_back(ColumnSpec{"boxes", DType::f32, {4}, kRagged});
    tables_.emplace_back(ColumnSpec{"box_labels", DType::i64, {}, kRagged});
    tables_.emplace_back(ColumnSpec{"areas", DType::f32, {}, kRagged});
    tables_.emplace_back(ColumnSpec{"crowd", DType::u8, {}, kRagged});
  }
  if (keypoints_) tables_.emplace_back(ColumnSpec{"keypoints", DType::f32, {keypoints, 3}, kRagged});
}

TargetKinds ObjectColumns::targets() const {
  TargetKinds kinds;
  if (boxes_) kinds["boxes"] = TargetKind::boxes;
  if (keypoints_) kinds["keypoints"] = TargetKind::keypoints;
  return kinds;
}

void ObjectColumns::add(const ObjectRows& rows) {
  std::size_t c = 0;
  const auto add = [&](const auto& values) { tables_[c++].add(std::as_bytes(std::span(values))); };
  if (boxes_) {
    add(rows.boxes);
    add(rows.labels);
    add(rows.areas);
    add(rows.crowd);
  }
  if (keypoints_) add(rows.keypoints);
}

std::string category_list(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + json_quote(name);
  return '[' + text + ']';
}

}  // namespace shard::convert
