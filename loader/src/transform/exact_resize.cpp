#include "transform/exact_resize.hpp"

#include <algorithm>
#include <cstring>

#include "transform/exact_filter.hpp"

namespace shard {
namespace {

// Which of `resized` outputs that begin at `offset` of a view lie in its `size` positions.
struct Shown {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
Shown shown_outputs(std::uint32_t resized, std::int32_t offset, std::uint32_t size) {
  const std::int64_t begin = std::clamp<std::int64_t>(-std::int64_t{offset}, 0, resized);
  const std::int64_t end = std::clamp<std::int64_t>(std::int64_t{size} - offset, begin, resized);
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

void fill_pixels(std::uint8_t* out, std::size_t pixels, std::span<const std::uint8_t> value) {
  for (std::size_t i = 0; i < pixels; ++i, out += value.size()) std::copy(value.begin(), value.end(), out);
}

}  // namespace

void ExactResize::plan(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
                       std::uint32_t end, Axis& axis) {
  axis.begin = begin;
  axis.end = end;
  axis.most_taps = exact::most_taps(filter, box, out);
  axis.first.resize(end - begin);
  axis.count.resize(end - begin);
  axis.weights.assign(std::size_t{end - begin} * axis.most_taps, 0);
  for (std::uint32_t i = 0; i < end - begin; ++i) {
    const exact::Taps taps(filter, box, out, begin + i);
    axis.first[i] = taps.first;
    axis.count[i] = taps.count;
    for (std::uint32_t k = 0; k < taps.count; ++k)
      axis.weights[std::size_t{i} * axis.most_taps + k] = taps.weight(k);
  }
}

void ExactResize::start(const Box& box) {
  box_ = box;
  const SampleCrop& crop = box.crop;
  const Shown columns = shown_outputs(crop.resized_width, crop.column, box.width);
  const Shown rows = shown_outputs(crop.resized_height, crop.row, box.height);
  plan(box.filter, crop.width, crop.resized_width, columns.begin, columns.end, columns_);
  plan(box.filter, crop.height, crop.resized_height, rows.begin, rows.end, rows_);
  ring_rows_ = rows_.most_taps;
  ring_row_bytes_ = std::size_t{columns.end - columns.begin} * box.channels;
  ring_.resize(ring_rows_ * ring_row_bytes_ * box.planes.size());
  done_ = 0;
}

void ExactResize::resize_columns(std::uint32_t end) {
  for (; done_ < end; ++done_) {
    for (std::size_t plane = 0; plane < box_.planes.size(); ++plane) {
      const std::uint8_t* const in = box_.planes[plane] + done_ * box_.row_bytes;
      std::uint8_t* out = ring_row(done_, plane);
      for (std::size_t i = 0; i < columns_.first.size(); ++i) {
        const std::int32_t* const weights = &columns_.weights[i * columns_.most_taps];
        for (std::size_t c = 0; c < box_.channels; ++c) {
          std::int32_t sum = exact::kHalf;
          for (std::uint32_t k = 0; k < columns_.count[i]; ++k)
            sum += in[(std::size_t{columns_.first[i]} + k) * box_.channels + c] * weights[k];
          *out++ = exact::byte_of(sum);
        }
      }
    }
  }
}

void ExactResize::row(std::uint32_t y, std::span<std::byte* const> outs) {
  const std::int64_t resized = std::int64_t{y} - box_.crop.row;
  const bool shown = resized >= rows_.begin && resized < rows_.end;
  const std::size_t i = shown ? static_cast<std::size_t>(resized - rows_.begin) : 0;
  if (shown) {
    done_ = std::max(done_, rows_.first[i]);
    resize_columns(rows_.first[i] + rows_.count[i]);
  }
  const std::size_t pixel = box_.channels;
  const std::size_t inside = shown ? columns_.end - columns_.begin : 0;
  // Pixels of the view before and after the resized box.
  std::size_t before = inside == 0 ? 0 : static_cast<std::size_t>(std::max(box_.crop.column, 0));
  std::size_t after = box_.width - before - inside;
  if (box_.crop.flip) std::swap(before, after);
  for (std::size_t plane = 0; plane < box_.planes.size(); ++plane) {
    auto* out = reinterpret_cast<std::uint8_t*>(outs[plane]);
    const std::span<const std::uint8_t> fill = box_.fill.subspan(plane * pixel, pixel);
    fill_pixels(out, before, fill);
    out += before * pixel;
    const std::int32_t* const weights = &rows_.weights[i * rows_.most_taps];
    for (std::size_t x = 0; x < inside; ++x) {
      const std::size_t from = box_.crop.flip ? inside - 1 - x : x;
      for (std::size_t c = 0; c < pixel; ++c) {
        std::int32_t sum = exact::kHalf;
        for (std::uint32_t k = 0; k < rows_.count[i]; ++k)
          sum += ring_row(rows_.first[i] + k, plane)[from * pixel + c] * weights[k];
        out[x * pixel + c] = exact::byte_of(sum);
      }
    }
    fill_pixels(out + inside * pixel, after, fill);
  }
}

}  // namespace shard
