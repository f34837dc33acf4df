#include "transform/needed_box.hpp"

#include <algorithm>

#include "transform/check_work.hpp"
#include "transform/exact/exact_filter.hpp"
#include "transform/exact/exact_plan.hpp"

namespace shard {

namespace {

struct Span {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
};

// Of one axis: what the outputs that a view shows see of a box (exact_filter.hpp), and a pixel on each side,
// so that no rounding counts.
Span seen(ResizeFilter filter, std::uint32_t box, std::uint32_t resized, const ShownOutputs& shown) {
  if (shown.begin == shown.end) return {0, 1};
  if (resized == box) return {shown.begin, shown.end - shown.begin};
  const double scale = static_cast<double>(box) / resized;
  const double reach = exact::support_of(filter) * std::max(scale, 1.0) + 1.5;
  const double low = (shown.begin + 0.5) * scale - reach;
  const double high = (shown.end - 0.5) * scale + reach;
  const auto begin = static_cast<std::uint32_t>(std::clamp(low, 0.0, box - 1.0));
  const auto end = static_cast<std::uint32_t>(std::clamp(high, begin + 1.0, static_cast<double>(box)));
  return {begin, end - begin};
}

}  // namespace

SampleBox needed_box(const TransformWork& work, std::size_t row) {
  const SampleCrop& crop = work.crops[row];
  SampleBox box{crop.left, crop.top, crop.width, crop.height};
  // Programs of padded samples and patches see all of them.
  if (!work.exact || work.patch != 0 || work.padded || work.only_decodes()) return box;
  const std::uint32_t height = resized_height(work, crop);
  const std::uint32_t width = resized_width(work, crop);
  const Span rows =
      seen(work.filter, crop.height, height, shown_outputs(height, crop.row, work.delivered.height));
  const Span columns =
      seen(work.filter, crop.width, width, shown_outputs(width, crop.column, work.delivered.width));
  return {box.left + columns.begin, box.top + rows.begin, columns.size, rows.size};
}

SampleBox united(const SampleBox& a, const SampleBox& b) noexcept {
  const std::uint32_t left = std::min(a.left, b.left);
  const std::uint32_t top = std::min(a.top, b.top);
  const std::uint32_t right = std::max(a.left + a.width, b.left + b.width);
  const std::uint32_t bottom = std::max(a.top + a.height, b.top + b.height);
  return {left, top, right - left, bottom - top};
}

}  // namespace shard
