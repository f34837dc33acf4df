#include "transform/exact/exact_floats.hpp"

#include <algorithm>

#include "transform/exact/exact_filter.hpp"

namespace shard {

namespace {

// Of pixels of up to this many channels the columns are resized by the kernel for rows of values,
// of others pixel by pixel.
constexpr std::uint32_t kKernelChannels = 4;

}  // namespace

void ExactFloats::Axis::build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, ShownOutputs shown) {
  begins.assign(1, 0);
  at.clear();
  weights.clear();
  most_seen = 1;
  for (std::uint32_t x = shown.begin; x < shown.end; ++x) {
    const exact::FloatWeights taps(filter, box, out, x);
    most_seen = std::max(most_seen, taps.count);
    for (std::uint32_t k = 0; k < taps.count; ++k) {
      const float weight = taps.weight(k);
      if (weight == 0.0F) continue;
      at.push_back(taps.first + k);
      weights.push_back(weight);
    }
    if (x == shown.begin) first_seen = taps.first;
    begins.push_back(static_cast<std::uint32_t>(at.size()));
  }
}

void ExactFloats::start(const Box& box) {
  box_ = box;
  const SampleCrop& crop = box.crop;
  columns_ = shown_outputs(crop.resized_width, crop.column, box.width);
  rows_ = shown_outputs(crop.resized_height, crop.row, box.height);
  done_ = 0;
  view_.assign(float_row(std::size_t{box.width} * box.channels) + kFloatRowMultiple, box.fill);
  if (columns_.begin == columns_.end || rows_.begin == rows_.end) return;
  across_.build(box.filter, crop.width, crop.resized_width, columns_);
  down_.build(box.filter, crop.height, crop.resized_height, rows_);
  done_ = down_.first_seen;
  std::size_t stored = float_row(std::size_t{crop.width} * box.channels) + kFloatRowMultiple;
  if (box.channels <= kKernelChannels) {
    build_columns();
    stored = std::max(stored, few_.row_values(crop.width));
  }
  pitch_ = float_row(std::size_t{columns_.end - columns_.begin} * box.channels) + kFloatRowMultiple;
  if (stored_.size() < stored) stored_.resize(stored);
  // Kernels compute a little more than what is shown.
  ring_.resize(std::max(ring_.size(), down_.most_seen * pitch_));
  finished_.resize(std::max(finished_.size(), pitch_));
}

void ExactFloats::build_columns() {
  const std::uint32_t outputs = columns_.end - columns_.begin;
  const std::size_t values = std::size_t{outputs} * box_.channels;
  few_.channels = box_.channels;
  few_.pitch = float_row(values);
  few_.max_taps = 1;
  for (std::uint32_t x = 0; x < outputs; ++x)
    few_.max_taps =
        std::max(few_.max_taps, across_.at[across_.begins[x + 1] - 1] - across_.at[across_.begins[x]] + 1);
  few_.at.assign(few_.pitch, 0);
  few_.weights.assign(few_.pitch * few_.max_taps, 0.0F);
  for (std::size_t j = 0; j < values; ++j) {
    const std::size_t pixel = j / box_.channels;
    const std::size_t x = box_.crop.flip ? outputs - 1 - pixel : pixel;
    const std::uint32_t first = across_.at[across_.begins[x]];
    few_.at[j] = static_cast<std::int32_t>(first * box_.channels + j % box_.channels);
    for (std::uint32_t tap = across_.begins[x]; tap < across_.begins[x + 1]; ++tap)
      few_.weights[(across_.at[tap] - first) * few_.pitch + j] = across_.weights[tap];
  }
}

float* ExactFloats::ring_row(std::uint32_t source_row) noexcept {
  return ring_.data() + source_row % down_.most_seen * pitch_;
}

// The shown columns of one stored row.
void ExactFloats::resize_columns(const float* stored, float* out) {
  if (box_.channels <= kKernelChannels) return floats_.columns(few_, stored, out);
  const std::uint32_t outputs = columns_.end - columns_.begin;
  // Ascending: each pixel overwrites what the last one wrote behind it.
  for (std::uint32_t pixel = 0; pixel < outputs; ++pixel) {
    const std::uint32_t x = box_.crop.flip ? outputs - 1 - pixel : pixel;
    taps_.clear();
    for (std::uint32_t tap = across_.begins[x]; tap < across_.begins[x + 1]; ++tap)
      taps_.push_back(stored + std::size_t{across_.at[tap]} * box_.channels);
    floats_.rows(taps_.data(), &across_.weights[across_.begins[x]], taps_.size(), box_.channels,
                 out + std::size_t{pixel} * box_.channels);
  }
}

// Source rows before `end` are in the ring.
void ExactFloats::need_rows(std::uint32_t end) {
  for (; done_ < end; ++done_) {
    floats_.load(box_.dtype, box_.pixels + done_ * box_.row_bytes,
                 std::size_t{box_.crop.width} * box_.channels, stored_.data());
    resize_columns(stored_.data(), ring_row(done_));
  }
}

const float* ExactFloats::row(std::uint32_t y) {
  const std::int64_t output = std::int64_t{y} - box_.crop.row;
  const std::size_t all = std::size_t{box_.width} * box_.channels;
  if (columns_.begin == columns_.end || output < rows_.begin || output >= rows_.end) {
    std::fill_n(view_.data(), all, box_.fill);
    return view_.data();
  }
  const auto i = static_cast<std::size_t>(output - rows_.begin);
  const std::uint32_t begin = down_.begins[i];
  const std::uint32_t end = down_.begins[i + 1];
  need_rows(down_.at[end - 1] + 1);
  taps_.clear();
  for (std::uint32_t tap = begin; tap < end; ++tap) taps_.push_back(ring_row(down_.at[tap]));
  const std::size_t inside = std::size_t{columns_.end - columns_.begin} * box_.channels;
  floats_.rows(taps_.data(), &down_.weights[begin], taps_.size(), inside, finished_.data());
  // Pixels of the view before, inside of and after the resized box.
  std::size_t before = static_cast<std::size_t>(std::max(box_.crop.column, 0)) * box_.channels;
  const std::size_t after = all - before - inside;
  if (box_.crop.flip) before = after;
  std::fill_n(view_.data(), before, box_.fill);
  std::copy_n(finished_.data(), inside, view_.data() + before);
  std::fill(view_.data() + before + inside, view_.data() + all, box_.fill);
  return view_.data();
}

}  // namespace shard
