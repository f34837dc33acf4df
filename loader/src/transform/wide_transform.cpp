#include "transform/wide_transform.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "transform/check_work.hpp"

namespace shard {

namespace {

// Of pixels of up to this many channels the columns are resized by the kernel for rows of values,
// of others pixel by pixel.
constexpr std::uint32_t kFewChannels = 4;
constexpr std::size_t kPieceValues = 16384;  // that are converted at once

// At least `count` values; zero at first.
template <class T>
T* room(std::vector<T>& values, std::size_t count) {
  if (values.size() < count) values.resize(count);
  return values.data();
}

// Elements of `bytes` bytes, one after the other in `in`, to places that are `stride` elements apart.
template <std::size_t kBytes>
void scatter_as(const std::byte* in, std::size_t in_stride, std::size_t count, std::byte* out,
                std::size_t out_stride) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(out + i * out_stride * kBytes, in + i * in_stride * kBytes, kBytes);
}

void scatter(std::size_t bytes, const std::byte* in, std::size_t in_stride, std::size_t count, std::byte* out,
             std::size_t out_stride) {
  if (bytes == 1) return scatter_as<1>(in, in_stride, count, out, out_stride);
  if (bytes == 2) return scatter_as<2>(in, in_stride, count, out, out_stride);
  scatter_as<4>(in, in_stride, count, out, out_stride);
}

void reverse_pixels(const std::byte* in, std::size_t pixels, std::size_t pixel_bytes, std::byte* out) {
  for (std::size_t i = 0; i < pixels; ++i)
    std::memcpy(out + i * pixel_bytes, in + (pixels - 1 - i) * pixel_bytes, pixel_bytes);
}

}  // namespace

void WideTransformer::begin(const TransformWork& work) {
  work_ = &work;
  floats_ = float_kernels();
  channels_ = work.stored.channels;
  planar_in_ = channels_ > 1 && work.stored.layout == Layout::nchw;
  planar_out_ = channels_ > 1 && work.delivered.layout == Layout::nchw;
  planes_ = planar_in_ ? channels_ : 1;
  pixel_channels_ = planar_in_ ? 1 : channels_;
  converts_ = converts_values(work);
  normalization_.set(work, 0, pixel_channels_);
}

void WideTransformer::sample(std::size_t index) {
  source_ = work_->sources[index];
  target_ = work_->target + index * work_->delivered.size_bytes();
  const SampleCrop& crop = work_->crops[index];
  if (work_->exact)
    resize_exactly(index);
  else if (resizes(*work_, crop))
    resize(crop);
  else if (converts_)
    convert(crop);
  else
    copy(crop);
}

const std::byte* WideTransformer::stored_at(std::size_t plane, std::size_t row,
                                            std::size_t column) const noexcept {
  const std::size_t pixel = (plane * work_->stored.height + row) * work_->stored.width + column;
  return source_ + pixel * pixel_channels_ * size_bytes(work_->stored.dtype);
}

std::byte* WideTransformer::delivered_at(std::size_t channel, std::size_t row,
                                         std::size_t column) const noexcept {
  const SampleSpec& spec = work_->delivered;
  const std::size_t element = planar_out_ ? (channel * spec.height + row) * spec.width + column
                                          : (row * spec.width + column) * channels_ + channel;
  return target_ + element * size_bytes(spec.dtype);
}

// Elements of the delivered type, in the stored layout, to their places.
void WideTransformer::place(std::size_t plane, std::size_t row, std::size_t column, const std::byte* in,
                            std::size_t pixels) {
  const std::size_t bytes = size_bytes(work_->delivered.dtype);
  if (planar_in_ == planar_out_) {
    std::memcpy(delivered_at(plane, row, column), in, pixels * pixel_channels_ * bytes);
  } else if (planar_in_) {
    scatter(bytes, in, 1, pixels, delivered_at(plane, row, column), channels_);
  } else {
    for (std::size_t channel = 0; channel < channels_; ++channel)
      scatter(bytes, in + channel * bytes, channels_, pixels, delivered_at(channel, row, column), 1);
  }
}

void WideTransformer::finish(std::size_t plane, std::size_t row, std::size_t column, const float* in,
                             std::size_t pixels) {
  const std::size_t values = pixels * pixel_channels_;
  const DType dtype = work_->delivered.dtype;
  if (planar_in_ == planar_out_)
    return floats_.store(dtype, normalization_, in, values, delivered_at(plane, row, column));
  std::byte* const cast = room(cast_, values * size_bytes(dtype));
  floats_.store(dtype, normalization_, in, values, cast);
  place(plane, row, column, cast, pixels);
}

void WideTransformer::copy(const SampleCrop& crop) {
  const std::size_t pixel_bytes = pixel_channels_ * size_bytes(work_->stored.dtype);
  if (work_->stored == work_->delivered && !crop.flip && crop.width == work_->stored.width &&
      crop.height == work_->stored.height) {
    std::memcpy(target_, source_, work_->stored.size_bytes());
    return;
  }
  for (std::size_t plane = 0; plane < planes_; ++plane) {
    for (std::size_t y = 0; y < crop.height; ++y) {
      const std::byte* row = stored_at(plane, crop.top + y, crop.left);
      if (crop.flip) {
        std::byte* const turned = room(cast_, crop.width * pixel_bytes);
        reverse_pixels(row, crop.width, pixel_bytes, turned);
        row = turned;
      }
      place(plane, y, 0, row, crop.width);
    }
  }
}

void WideTransformer::convert(const SampleCrop& crop) {
  const std::size_t piece = std::max<std::size_t>(1, kPieceValues / pixel_channels_);
  const std::size_t values = float_row(std::min<std::size_t>(piece, crop.width) * pixel_channels_);
  float* const stored = room(stored_, values);
  float* const turned = room(finished_, values);
  for (std::size_t plane = 0; plane < planes_; ++plane) {
    if (planar_in_) normalization_.set(*work_, static_cast<std::uint32_t>(plane), 1);
    for (std::size_t y = 0; y < crop.height; ++y) {
      for (std::size_t x = 0; x < crop.width; x += piece) {
        const std::size_t pixels = std::min<std::size_t>(piece, crop.width - x);
        const std::size_t from = crop.flip ? crop.width - x - pixels : x;
        floats_.load(work_->stored.dtype, stored_at(plane, crop.top + y, crop.left + from),
                     pixels * pixel_channels_, stored);
        if (crop.flip)
          reverse_pixels(reinterpret_cast<const std::byte*>(stored), pixels, pixel_channels_ * sizeof(float),
                         reinterpret_cast<std::byte*>(turned));
        finish(plane, y, x, crop.flip ? turned : stored, pixels);
      }
    }
  }
}

// Columns of one stored row.
void WideTransformer::resize_columns(const SampleCrop& crop, const float* stored, float* out) const {
  if (pixel_channels_ <= kFewChannels) return floats_.columns(columns_, stored, out);
  std::array<const float*, kMaxTaps> tap_pixels{};
  std::array<float, kMaxTaps> weights{};
  const std::size_t width = work_->delivered.width;
  for (std::size_t x = 0; x < width;
       ++x) {  // ascending: each pixel overwrites what the last one wrote behind it
    const std::size_t at = crop.flip ? width - 1 - x : x;
    const Taps taps = column_taps_.taps[at];
    for (std::size_t k = 0; k < taps.count; ++k) {
      tap_pixels[k] = stored + (taps.first + k) * pixel_channels_;
      weights[k] = column_taps_.weights[k * column_taps_.pitch + at];
    }
    floats_.rows(tap_pixels.data(), weights.data(), taps.count, pixel_channels_, out + x * pixel_channels_);
  }
}

// A sample of any size, or a view that is placed.
void WideTransformer::resize_exactly(std::size_t index) {
  const SampleSpec stored = stored_spec(*work_, index);
  const std::size_t pixel_bytes = pixel_channels_ * size_bytes(stored.dtype);
  ExactFloats::Box box;
  box.row_bytes = stored.width * pixel_bytes;
  box.dtype = stored.dtype;
  box.channels = pixel_channels_;
  box.crop = work_->crops[index];
  box.crop.resized_height = resized_height(*work_, box.crop);
  box.crop.resized_width = resized_width(*work_, box.crop);
  const bool patches = work_->patch != 0;
  box.height = patches ? box.crop.resized_height : work_->delivered.height;
  box.width = patches ? box.crop.resized_width : work_->delivered.width;
  box.filter = work_->filter;
  box.fill = work_->fill_value;
  for (std::size_t plane = 0; plane < planes_; ++plane) {
    if (planar_in_) normalization_.set(*work_, static_cast<std::uint32_t>(plane), 1);
    box.pixels =
        source_ + (plane * stored.height + box.crop.top) * box.row_bytes + box.crop.left * pixel_bytes;
    exact_.start(box);
    for (std::uint32_t y = 0; y < box.height; ++y) {
      const float* const row = exact_.row(y);
      if (patches)
        finish_patches(plane, y, box.width, work_->tokens[index], row);
      else
        finish(plane, y, 0, row, box.width);
    }
  }
}

// Each row of the resized sample is a part of each patch of a row of patches.
void WideTransformer::finish_patches(std::size_t plane, std::uint32_t y, std::uint32_t width,
                                     std::uint64_t first, const float* in) {
  const std::size_t bytes = size_bytes(work_->delivered.dtype);
  const std::size_t side = work_->patch;
  std::byte* const cast = room(cast_, std::size_t{width} * pixel_channels_ * bytes);
  floats_.store(work_->delivered.dtype, normalization_, in, std::size_t{width} * pixel_channels_, cast);
  for (std::size_t x = 0; x < width; x += side) {
    const std::uint64_t patch = first + y / side * (width / side) + x / side;
    std::byte* const out = work_->target + (((patch * side + y % side) * side) * channels_ + plane) * bytes;
    if (planar_in_)
      scatter(bytes, cast + x * bytes, 1, side, out, channels_);
    else
      std::memcpy(out, cast + x * channels_ * bytes, side * channels_ * bytes);
  }
}

// Columns of the stored rows, then rows of those, in a ring: row r lies in slot r % slots.
void WideTransformer::resize(const SampleCrop& crop) {
  const SampleSpec& delivered = work_->delivered;
  rows_.build(crop.height, delivered.height);
  std::size_t stored_values = 0;
  if (pixel_channels_ <= kFewChannels) {
    columns_.build(crop.width, delivered.width, pixel_channels_, crop.flip);
    stored_values = columns_.row_values(crop.width);
  } else {
    column_taps_.build(crop.width, delivered.width);
    stored_values = float_row(std::size_t{crop.width} * pixel_channels_) + kFloatRowMultiple;
  }
  const std::size_t values = std::size_t{delivered.width} * pixel_channels_;
  const std::size_t pitch = float_row(values) + kFloatRowMultiple;
  const std::size_t slots = rows_.max_taps;
  float* const stored = room(stored_, stored_values);
  float* const ring = room(ring_, slots * pitch);
  float* const finished = room(finished_, pitch);
  std::array<float, kMaxTaps> weights{};
  std::array<const float*, kMaxTaps> tap_rows{};
  for (std::size_t plane = 0; plane < planes_; ++plane) {
    if (planar_in_) normalization_.set(*work_, static_cast<std::uint32_t>(plane), 1);
    std::size_t ready = 0;  // rows of the box
    for (std::size_t y = 0; y < delivered.height; ++y) {
      const Taps taps = rows_.taps[y];
      for (; ready < taps.first + taps.count; ++ready) {
        floats_.load(work_->stored.dtype, stored_at(plane, crop.top + ready, crop.left),
                     std::size_t{crop.width} * pixel_channels_, stored);
        resize_columns(crop, stored, ring + ready % slots * pitch);
      }
      for (std::size_t k = 0; k < taps.count; ++k) {
        weights[k] = rows_.weights[k * rows_.pitch + y];
        tap_rows[k] = ring + (taps.first + k) % slots * pitch;
      }
      floats_.rows(tap_rows.data(), weights.data(), taps.count, values, finished);
      finish(plane, y, 0, finished, delivered.width);
    }
  }
}

}  // namespace shard
