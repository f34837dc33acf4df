#include "image/resample/resample.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace shard::image {
namespace {

// What the ring, and a batch of source rows, may take before that axis is done without.
constexpr std::size_t kMaxRingBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxBatchBytes = std::size_t{16} << 20;

}  // namespace

std::byte* AlignedBuffer::reserve(std::size_t size_bytes) {
  if (size_bytes > size_) {
    bytes_.reset();
    size_ = 0;
    bytes_.reset(static_cast<std::byte*>(::operator new[](size_bytes, std::align_val_t{kAlignment})));
    std::memset(bytes_.get(), 0, size_bytes);
    size_ = size_bytes;
  }
  return bytes_.get();
}

void Resampler::start(Size source, Size resized, const Box& box, Filter filter, RowSink& sink) {
  horizontal_.reset();
  vertical_.reset();
  huge_horizontal_.reset();
  huge_vertical_.reset();
  sink_ = &sink;
  columns_ = std::size_t{box.width} * 3;
  rows_pushed_ = pairs_done_ = outputs_done_ = carried_rows_ = piece_column_ = 0;
  copies_ = source == resized;
  if (copies_) {  // all filters keep each pixel
    source_box_ = box;
    return;
  }
  start_vertical(source, resized, box, filter);
  start_horizontal(source, resized, box, filter);
}

void Resampler::start_vertical(Size source, Size resized, const Box& box, Filter filter) {
  std::size_t ring_rows = kernels_.batch_rows / 2;  // of a batch, where there is no ring
  if (!HugeAxis::is_huge(source.height, resized.height, box.height, filter)) {
    vertical_ = vertical_plans_.get(source.height, resized.height, box.top, box.height, filter);
    ring_rows = std::bit_ceil(std::size_t{vertical_->max_span} + kernels_.batch_rows / 2);
    if (ring_rows * pair_row_bytes(columns_) > kMaxRingBytes) {
      vertical_.reset();
      ring_rows = kernels_.batch_rows / 2;
    }
  }
  if (vertical_) {
    source_box_.top = vertical_->source_begin;
    source_box_.height = vertical_->source_end - vertical_->source_begin;
    window_.resize(vertical_->max_pairs);
  } else {
    huge_vertical_ = std::make_unique<HugeAxis>(source.height, resized.height, box.top, box.height, filter);
    source_box_.top = huge_vertical_->source_begin;
    source_box_.height = huge_vertical_->source_end - huge_vertical_->source_begin;
    huge_columns_.begin(*huge_vertical_, columns_);
    resized_row_.resize(columns_);
  }
  ring_mask_ = static_cast<std::uint32_t>(std::bit_ceil(ring_rows) - 1);
  ring_ = ring_storage_.reserve((std::size_t{ring_mask_} + 1) * pair_row_bytes(columns_));
}

void Resampler::start_horizontal(Size source, Size resized, const Box& box, Filter filter) {
  const std::size_t batch_bytes = std::size_t{kernels_.batch_rows} * source.width * 3;
  if (batch_bytes > kMaxBatchBytes || HugeAxis::is_huge(source.width, resized.width, box.width, filter)) {
    huge_horizontal_ = std::make_unique<HugeAxis>(source.width, resized.width, box.left, box.width, filter);
    source_box_.left = huge_horizontal_->source_begin;
    source_box_.width = huge_horizontal_->source_end - huge_horizontal_->source_begin;
    huge_row_.begin(*huge_horizontal_);
    resized_row_.resize(columns_);
    return;
  }
  horizontal_ = horizontal_plans_.get(source.width, resized.width, box.left, box.width, filter);
  source_box_.left = horizontal_->source_begin;
  source_box_.width = horizontal_->source_end - horizontal_->source_begin;
  scratch_ = scratch_storage_.reserve(kernels_.scratch_bytes(*horizontal_));
  carry_ = reinterpret_cast<std::uint8_t*>(
      carry_storage_.reserve(std::size_t{kernels_.batch_rows} * source_box_.width * 3));
}

std::uint8_t* Resampler::pair_row(std::uint32_t pair) {
  return reinterpret_cast<std::uint8_t*>(ring_) + std::size_t{pair & ring_mask_} * pair_row_bytes(columns_);
}

void Resampler::push(const std::uint8_t* rows, std::size_t stride_bytes, std::uint32_t count) {
  if (takes_pieces()) {
    for (std::uint32_t i = 0; i < count; ++i) push_piece(rows + i * stride_bytes, source_box_.width);
    return;
  }
  const std::size_t row_bytes = std::size_t{source_box_.width} * 3;
  if (copies_) {
    for (; count > 0; --count, rows += stride_bytes) {
      std::memcpy(sink_->begin_row(rows_pushed_), rows, row_bytes);
      sink_->end_row(rows_pushed_++);
    }
    return;
  }
  const std::uint32_t batch = kernels_.batch_rows;
  std::array<const std::uint8_t*, kMaxBatchRows> batch_rows{};
  while (count > 0) {
    if (carried_rows_ == 0 && count >= batch) {
      for (std::uint32_t i = 0; i < batch; ++i) batch_rows[i] = rows + i * stride_bytes;
      rows += batch * stride_bytes;
      count -= batch;
      rows_pushed_ += batch;
      process_batch(batch_rows.data());
      continue;
    }
    std::memcpy(carry_ + carried_rows_ * row_bytes, rows, row_bytes);
    rows += stride_bytes;
    --count;
    ++rows_pushed_;
    ++carried_rows_;
    if (carried_rows_ == batch || rows_pushed_ == source_box_.height) {
      // Past the last row any row will do: its coefficients are 0.
      for (std::uint32_t i = 0; i < batch; ++i)
        batch_rows[i] = carry_ + std::min(i, carried_rows_ - 1) * row_bytes;
      carried_rows_ = 0;
      process_batch(batch_rows.data());
    }
  }
}

void Resampler::push_piece(const std::uint8_t* rgb, std::uint32_t count) {
  huge_row_.push(*huge_horizontal_, rgb, source_box_.left + piece_column_, count);
  piece_column_ += count;
  if (piece_column_ < source_box_.width) return;
  huge_row_.finish(resized_row_.data());
  huge_row_.begin(*huge_horizontal_);
  piece_column_ = 0;
  add_row(resized_row_.data());
}

// A row that is resized already goes where the horizontal pass would have put it.
void Resampler::add_row(const std::uint8_t* resized_row) {
  if (huge_vertical_) {
    huge_columns_.push(*huge_vertical_, source_box_.top + rows_pushed_++, resized_row);
    take_columns(rows_pushed_);
    return;
  }
  const std::uint32_t row = rows_pushed_++;
  std::uint8_t* const out = pair_row(row / 2) + row % 2 * 2;
  for (std::size_t column = 0; column < columns_; ++column)
    out[column / 2 * 4 + column % 2] = resized_row[column];
  const bool last = rows_pushed_ == source_box_.height;
  if (row % 2 == 0 && !last) return;
  // Past the last row any row will do: its coefficients are 0.
  if (row % 2 == 0)
    for (std::size_t column = 0; column < columns_; ++column)
      out[column / 2 * 4 + column % 2 + 2] = resized_row[column];
  pairs_done_ = row / 2 + 1;
  emit();
}

void Resampler::take_columns(std::uint32_t rows) {
  while (huge_columns_.next_done(*huge_vertical_, source_box_.top + rows - 1)) {
    const std::uint32_t y = huge_columns_.next_index();
    huge_columns_.write_next(sink_->begin_row(y));
    sink_->end_row(y);
  }
}

void Resampler::process_batch(const std::uint8_t* const* rows) {
  std::array<std::uint8_t*, kMaxBatchRows / 2> pair_rows{};
  const std::uint32_t pairs = kernels_.batch_rows / 2;
  for (std::uint32_t i = 0; i < pairs; ++i) pair_rows[i] = pair_row(pairs_done_ + i);
  kernels_.horizontal(*horizontal_, rows, std::size_t{source_box_.width} * 3, scratch_, pair_rows.data());
  if (huge_vertical_) {
    const std::uint32_t first = pairs_done_ * 2;
    const std::uint32_t rows_left = std::min(kernels_.batch_rows, source_box_.height - first);
    for (std::uint32_t row = 0; row < rows_left; ++row) {
      const std::uint8_t* const from = pair_rows[row / 2] + row % 2 * 2;
      for (std::size_t column = 0; column < columns_; ++column)
        resized_row_[column] = from[column / 2 * 4 + column % 2];
      huge_columns_.push(*huge_vertical_, source_box_.top + first + row, resized_row_.data());
      take_columns(first + row + 1);
    }
    pairs_done_ += pairs;
    return;
  }
  pairs_done_ += pairs;
  emit();
}

void Resampler::emit() {
  while (outputs_done_ < vertical_->outputs.size()) {
    const AxisPlan::Output& output = vertical_->outputs[outputs_done_];
    if (output.first_pair + output.pair_count > pairs_done_) return;
    for (std::uint32_t i = 0; i < output.pair_count; ++i) window_[i] = pair_row(output.first_pair + i);
    kernels_.vertical(*vertical_, outputs_done_, window_.data(), columns_, sink_->begin_row(outputs_done_));
    sink_->end_row(outputs_done_);
    ++outputs_done_;
  }
}

}  // namespace shard::image
