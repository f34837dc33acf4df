#include "transform/exact/exact_resize.hpp"

#include <algorithm>
#include <cstring>

namespace shard {
namespace {

constexpr std::uint32_t kBatch = 8;  // source rows whose columns are resized together

void fill_pixels(std::uint8_t* out, std::size_t pixels, std::span<const std::uint8_t> value) {
  for (std::size_t i = 0; i < pixels; ++i, out += value.size()) std::copy(value.begin(), value.end(), out);
}

}  // namespace

void ExactResize::start(const Box& box) {
  box_ = box;
  const SampleCrop& crop = box.crop;
  const ShownOutputs columns = shown_outputs(crop.resized_width, crop.column, box.width);
  const ShownOutputs rows = shown_outputs(crop.resized_height, crop.row, box.height);
  columns_begin_ = columns.begin;
  columns_end_ = columns.end;
  rows_begin_ = rows.begin;
  rows_end_ = rows.end;
  done_ = source_end_ = 0;
  if (columns.begin == columns.end || rows.begin == rows.end) return;

  copies_rows_ = crop.resized_height == crop.height;
  std::uint32_t most_rows = 1;  // that an output sees
  source_end_ = rows.end;
  if (!copies_rows_) {
    rows_.build(box.filter, crop.height, crop.resized_height, rows.begin, rows.end);
    most_rows = rows_.axis.most_taps;
    source_end_ = rows_.axis.outputs.back().first + rows_.axis.outputs.back().count;
  }
  copies_columns_ = crop.resized_width == crop.width;
  ring_row_bytes_ = std::size_t{columns.end - columns.begin} * box.channels;
  if (!copies_columns_) {
    columns_.build(box.filter, crop.width, crop.resized_width, columns.begin, columns.end, box.channels,
                   crop.flip);
    ring_row_bytes_ = columns_.out_bytes();
  }
  ring_rows_ = most_rows + kBatch;
  const std::size_t planes = box.planes.size();
  ring_.resize(ring_rows_ * planes * ring_row_bytes_);
  ins_.resize(std::max(kBatch * planes, std::size_t{most_rows} + 1));
  soon_.resize(kBatch * planes);
  outs_.resize(kBatch * planes);
  if (!copies_columns_ && columns_.reach > source_bytes())
    padded_.assign(kBatch * planes * columns_.reach, 0);
}

std::size_t ExactResize::source_bytes() const noexcept {
  return std::size_t{box_.crop.width} * box_.channels;
}

std::uint8_t* ExactResize::ring_row(std::uint32_t source_row, std::size_t plane) noexcept {
  return ring_.data() + (source_row % ring_rows_ * box_.planes.size() + plane) * ring_row_bytes_;
}

const std::uint8_t* ExactResize::source_row(std::uint32_t row, std::size_t plane) const noexcept {
  return box_.planes[plane] + row * box_.row_bytes;
}

const std::uint8_t* ExactResize::resized_columns(std::uint32_t row, std::size_t plane) noexcept {
  if (uses_ring()) return ring_row(row, plane);
  return source_row(row, plane) + std::size_t{columns_begin_} * box_.channels;
}

void ExactResize::resize_columns(std::uint32_t end) {
  const std::size_t planes = box_.planes.size();
  while (done_ < end) {
    const std::uint32_t batch = std::min(kBatch, source_end_ - done_);
    const std::size_t count = batch * planes;
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = done_ + static_cast<std::uint32_t>(i / planes);
      ins_[i] = source_row(row, i % planes);
      soon_[i] = source_row(std::min(row + batch, box_.crop.height - 1), i % planes);
      outs_[i] = ring_row(row, i % planes);
    }
    done_ += batch;
    if (copies_columns_) {
      const std::uint32_t pixels = columns_end_ - columns_begin_;
      for (std::size_t i = 0; i < count; ++i)
        copies_.reverse[0](
            reinterpret_cast<const std::byte*>(ins_[i]) + std::size_t{columns_begin_} * box_.channels, pixels,
            box_.channels, reinterpret_cast<std::byte*>(outs_[i]));
      continue;
    }
    if (columns_.reach > source_bytes())
      for (std::size_t i = 0; i < count; ++i) {
        std::uint8_t* const padded = padded_.data() + i * columns_.reach;
        std::memcpy(padded, ins_[i], source_bytes());
        ins_[i] = padded;
      }
    kernels_.columns(columns_, ins_.data(), soon_.data(), count, outs_.data());
  }
}

void ExactResize::write_pixels(std::uint32_t output, std::size_t plane, std::uint8_t* out) {
  const std::size_t bytes = std::size_t{columns_end_ - columns_begin_} * box_.channels;
  if (copies_rows_) {
    std::memcpy(out, resized_columns(output, plane), bytes);
    return;
  }
  const std::size_t i = output - rows_begin_;
  const ExactAxis::Output& rows = rows_.axis.outputs[i];
  for (std::uint32_t k = 0; k < rows.count; ++k) ins_[k] = resized_columns(rows.first + k, plane);
  if (rows.count % 2 != 0) ins_[rows.count] = ins_[0];  // any; its weight is 0
  kernels_.rows(ins_.data(), &rows_.pairs[i * rows_.axis.most_pairs], (rows.count + 1) / 2, bytes, out);
}

void ExactResize::row(std::uint32_t y, std::span<std::byte* const> outs) {
  const std::int64_t output = std::int64_t{y} - box_.crop.row;
  const bool shown = columns_begin_ < columns_end_ && output >= rows_begin_ && output < rows_end_;
  // Pixels of the view before, inside of and after the resized box.
  const std::size_t inside = shown ? columns_end_ - columns_begin_ : 0;
  std::size_t before = shown ? static_cast<std::size_t>(std::max(box_.crop.column, 0)) : 0;
  std::size_t after = box_.width - before - inside;
  if (box_.crop.flip) std::swap(before, after);

  const auto at = static_cast<std::uint32_t>(shown ? output : 0);
  if (shown && uses_ring()) {
    const ExactAxis::Output rows =
        copies_rows_ ? ExactAxis::Output{at, 1} : rows_.axis.outputs[at - rows_begin_];
    done_ = std::max(done_, rows.first);
    resize_columns(rows.first + rows.count);
  }
  const std::size_t pixel = box_.channels;
  for (std::size_t plane = 0; plane < box_.planes.size(); ++plane) {
    auto* out = reinterpret_cast<std::uint8_t*>(outs[plane]);
    const std::span<const std::uint8_t> fill = box_.fill.subspan(plane * pixel, pixel);
    fill_pixels(out, before, fill);
    if (shown) write_pixels(at, plane, out + before * pixel);
    fill_pixels(out + (before + inside) * pixel, after, fill);
  }
}

}  // namespace shard
