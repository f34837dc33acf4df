#include "transform/float_transform.hpp"

#include <algorithm>

#include "transform/check_work.hpp"

namespace shard {

namespace {

constexpr std::size_t kFloatBytes = 2;  // index of elements of 4 bytes in TransformKernels

// At least `count` values; zero at first.
float* at_least(std::vector<float>& values, std::size_t count) {
  if (values.size() < count) values.resize(count);
  return values.data();
}

}  // namespace

void FloatTransformer::begin(const TransformWork& work) {
  work_ = &work;
  floats_ = float_kernels();
  elements_ = transform_kernels();
  channels_ = work.stored.channels;
  planar_in_ = channels_ > 1 && work.stored.layout == Layout::nchw;
  planar_out_ = channels_ > 1 && work.delivered.layout == Layout::nchw;
  planes_in_ = planar_in_ ? channels_ : 1;
  pixel_channels_ = planar_in_ ? 1 : channels_;
  for (std::uint32_t c = 0; c < channels_; ++c) normalization_[c].set(work, c, 1);
  normalization_[4].set(work, 0, channels_);
}

void FloatTransformer::sample(std::size_t index) {
  source_ = work_->sources[index];
  target_ = work_->target + index * work_->delivered.size_bytes();
  if (resizes(*work_, work_->crops[index]))
    resize(work_->crops[index]);
  else
    copy(work_->crops[index]);
}

const std::byte* FloatTransformer::stored_row(std::size_t plane, std::size_t row,
                                              std::size_t column) const noexcept {
  const std::size_t pixel = (plane * work_->stored.height + row) * work_->stored.width + column;
  return source_ + pixel * pixel_channels_ * size_bytes(work_->stored.dtype);
}

void FloatTransformer::load_row(const SampleCrop& crop, std::size_t plane, std::size_t row,
                                float* out) const {
  floats_.load(work_->stored.dtype, stored_row(plane, crop.top + row, crop.left),
               std::size_t{crop.width} * pixel_channels_, out);
}

void FloatTransformer::copy(const SampleCrop& crop) {
  const std::size_t pitch = float_row(std::size_t{crop.width} * pixel_channels_);
  float* const stored = at_least(stored_row_, pitch);
  float* const finished = at_least(finished_, planes_in_ * pitch);
  for (std::size_t y = 0; y < crop.height; ++y) {
    const float* rows[4] = {};
    for (std::size_t plane = 0; plane < planes_in_; ++plane) {
      float* const place = finished + plane * pitch;
      load_row(crop, plane, y, crop.flip ? stored : place);
      if (crop.flip)
        elements_.reverse[kFloatBytes](reinterpret_cast<const std::byte*>(stored), crop.width,
                                       pixel_channels_, reinterpret_cast<std::byte*>(place));
      rows[plane] = place;
    }
    finish_row(y, rows);
  }
}

// Columns of the stored rows, then rows of those, in a ring: row r of a plane lies in slot r % slots.
void FloatTransformer::resize(const SampleCrop& crop) {
  const SampleSpec& delivered = work_->delivered;
  columns_.build(crop.width, delivered.width, pixel_channels_, crop.flip);
  rows_.build(crop.height, delivered.height);
  const std::size_t pitch = columns_.pitch;
  const std::size_t slots = rows_.max_taps;
  float* const stored = at_least(stored_row_, columns_.row_values(crop.width));
  float* const ring = at_least(ring_, planes_in_ * slots * pitch);
  float* const finished = at_least(finished_, planes_in_ * pitch);
  std::array<float, kMaxTaps> weights{};
  std::array<const float*, kMaxTaps> tap_rows{};
  std::size_t ready = 0;  // rows of the box
  for (std::size_t y = 0; y < delivered.height; ++y) {
    const Taps taps = rows_.taps[y];
    for (; ready < taps.first + taps.count; ++ready) {
      for (std::size_t plane = 0; plane < planes_in_; ++plane) {
        load_row(crop, plane, ready, stored);
        floats_.columns(columns_, stored, ring + (plane * slots + ready % slots) * pitch);
      }
    }
    for (std::size_t k = 0; k < taps.count; ++k) weights[k] = rows_.weights[k * rows_.pitch + y];
    const float* rows[4] = {};
    for (std::size_t plane = 0; plane < planes_in_; ++plane) {
      for (std::size_t k = 0; k < taps.count; ++k)
        tap_rows[k] = ring + (plane * slots + (taps.first + k) % slots) * pitch;
      float* const place = finished + plane * pitch;
      floats_.rows(tap_rows.data(), weights.data(), taps.count,
                   std::size_t{delivered.width} * pixel_channels_, place);
      rows[plane] = place;
    }
    finish_row(y, rows);
  }
}

// Rows in the stored layout -> the batch.
void FloatTransformer::finish_row(std::size_t y, const float* const* in) {
  const SampleSpec& delivered = work_->delivered;
  const std::size_t width = delivered.width;
  const std::size_t element = size_bytes(delivered.dtype);
  const float* rows[4] = {in[0], in[1], in[2], in[3]};
  const std::size_t plane_pitch = float_row(width);
  if (planar_in_ != planar_out_) {
    float* const layout = at_least(layout_, std::max(channels_ * plane_pitch, float_row(width * channels_)));
    if (planar_in_) {
      const std::byte* const planes[4] = {
          reinterpret_cast<const std::byte*>(in[0]), reinterpret_cast<const std::byte*>(in[1]),
          reinterpret_cast<const std::byte*>(in[2]), reinterpret_cast<const std::byte*>(in[3])};
      elements_.join[kFloatBytes](planes, width, channels_, reinterpret_cast<std::byte*>(layout));
      rows[0] = layout;
    } else {
      std::byte* planes[4] = {};
      for (std::size_t c = 0; c < channels_; ++c) {
        rows[c] = layout + c * plane_pitch;
        planes[c] = reinterpret_cast<std::byte*>(layout + c * plane_pitch);
      }
      elements_.split[kFloatBytes](reinterpret_cast<const std::byte*>(in[0]), width, channels_, planes);
    }
  }
  if (!planar_out_) {
    std::byte* const out = target_ + y * width * channels_ * element;
    floats_.store(delivered.dtype, normalization_[4], rows[0], width * channels_, out);
    return;
  }
  for (std::size_t c = 0; c < channels_; ++c)
    floats_.store(delivered.dtype, normalization_[c], rows[c], width,
                  target_ + (c * delivered.height + y) * width * element);
}

}  // namespace shard
