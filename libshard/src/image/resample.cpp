#include "image/resample.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace shard::image {

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
  horizontal_ = horizontal_plans_.get(source.width, resized.width, box.left, box.width, filter);
  vertical_ = vertical_plans_.get(source.height, resized.height, box.top, box.height, filter);
  source_box_ = {horizontal_->source_begin, vertical_->source_begin,
                 horizontal_->source_end - horizontal_->source_begin,
                 vertical_->source_end - vertical_->source_begin};
  sink_ = &sink;
  columns_ = std::size_t{box.width} * 3;
  rows_pushed_ = pairs_done_ = outputs_done_ = carried_rows_ = 0;
  const std::uint32_t ring_rows = std::bit_ceil(vertical_->max_span + kernels_.batch_rows / 2);
  ring_mask_ = ring_rows - 1;
  ring_ = ring_storage_.reserve(ring_rows * pair_row_bytes(columns_));
  scratch_ = scratch_storage_.reserve(kernels_.scratch_bytes(*horizontal_));
  carry_ = reinterpret_cast<std::uint8_t*>(
      carry_storage_.reserve(std::size_t{kernels_.batch_rows} * source_box_.width * 3));
  window_.resize(vertical_->max_pairs);
}

std::uint8_t* Resampler::pair_row(std::uint32_t pair) {
  return reinterpret_cast<std::uint8_t*>(ring_) + std::size_t{pair & ring_mask_} * pair_row_bytes(columns_);
}

void Resampler::push(const std::uint8_t* rows, std::size_t stride_bytes, std::uint32_t count) {
  const std::size_t row_bytes = std::size_t{source_box_.width} * 3;
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

void Resampler::process_batch(const std::uint8_t* const* rows) {
  std::array<std::uint8_t*, kMaxBatchRows / 2> pair_rows{};
  const std::uint32_t pairs = kernels_.batch_rows / 2;
  for (std::uint32_t i = 0; i < pairs; ++i) pair_rows[i] = pair_row(pairs_done_ + i);
  kernels_.horizontal(*horizontal_, rows, std::size_t{source_box_.width} * 3, scratch_, pair_rows.data());
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
