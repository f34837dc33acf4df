#include "image/resample/resample_huge.hpp"

#include <algorithm>

#include "image/resample/filter_kernels.hpp"

namespace shard::image {
namespace {

// Taps of a table: 16 MiB of coefficients, and as much again while it is made.
constexpr double kMaxTableTaps = 1 << 22;
// Taps of one output: the vector kernels transpose that many columns at once.
constexpr double kMaxOutputTaps = 1 << 17;

constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

}  // namespace

bool HugeAxis::is_huge(std::uint32_t source, std::uint32_t resized, std::uint32_t count, Filter filter) {
  if (filter == Filter::nearest) return false;  // one tap for each output
  const double support = with_kernel(filter, [](auto kernel) { return decltype(kernel)::kSupport; });
  const double taps =
      std::min<double>(2 * support * std::max(1.0, static_cast<double>(source) / resized), source);
  return taps > kMaxOutputTaps || taps * count > kMaxTableTaps;
}

HugeAxis::HugeAxis(std::uint32_t source_size, std::uint32_t resized_size, std::uint32_t begin_output,
                   std::uint32_t count, Filter filter_name)
    : source(source_size), resized(resized_size), begin(begin_output), filter(filter_name) {
  outputs.reserve(count);
  with_kernel(filter, [&](auto kernel) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const OutputTaps<decltype(kernel)> taps(source, resized, begin + i);
      double sum = 0.0;
      for (std::uint32_t position = taps.first(); position < taps.last(); ++position)
        sum += taps.value(position);
      outputs.push_back({taps.first(), taps.last(), sum});
    }
  });
  source_begin = outputs.front().first;
  source_end = outputs.back().last;
}

void HugeRow::begin(const HugeAxis& axis) {
  sums_.assign(axis.outputs.size() * 3, kHalf);
  first_open_ = 0;
}

void HugeRow::push(const HugeAxis& axis, const std::uint8_t* rgb, std::uint32_t column, std::uint32_t count) {
  const std::uint32_t end = column + count;
  with_kernel(axis.filter, [&](auto kernel) {
    for (std::size_t i = first_open_; i < axis.outputs.size() && axis.outputs[i].first < end; ++i) {
      const HugeAxis::Output& output = axis.outputs[i];
      const OutputTaps<decltype(kernel)> taps(axis.source, axis.resized,
                                              axis.begin + static_cast<std::uint32_t>(i));
      std::int32_t* const sums = &sums_[i * 3];
      const std::uint32_t last = std::min(output.last, end);
      for (std::uint32_t position = std::max(output.first, column); position < last; ++position) {
        const std::int32_t coefficient = fixed_coefficient(taps.value(position), output.sum);
        const std::uint8_t* const pixel = rgb + std::size_t{position - column} * 3;
        for (std::size_t channel = 0; channel < 3; ++channel) sums[channel] += pixel[channel] * coefficient;
      }
    }
  });
  while (first_open_ < axis.outputs.size() && axis.outputs[first_open_].last <= end) ++first_open_;
}

void HugeRow::finish(std::uint8_t* out) const { std::transform(sums_.begin(), sums_.end(), out, to_byte); }

void HugeColumns::begin(const HugeAxis& axis, std::size_t columns) {
  columns_ = columns;
  next_ = 0;
  slots_ = 1;
  // Outputs i .. j are open at once where j begins before i has ended; both ends only grow.
  for (std::size_t i = 0, j = 0; i < axis.outputs.size(); ++i) {
    j = std::max(j, i);
    while (j < axis.outputs.size() && axis.outputs[j].first < axis.outputs[i].last) ++j;
    slots_ = std::max(slots_, j - i);
  }
  sums_.assign(slots_ * columns_, kHalf);
}

std::int32_t* HugeColumns::sums_of(std::size_t output) noexcept { return &sums_[output % slots_ * columns_]; }

void HugeColumns::push(const HugeAxis& axis, std::uint32_t position, const std::uint8_t* row) {
  with_kernel(axis.filter, [&](auto kernel) {
    for (std::size_t i = next_; i < axis.outputs.size() && axis.outputs[i].first <= position; ++i) {
      if (position >= axis.outputs[i].last) continue;
      const OutputTaps<decltype(kernel)> taps(axis.source, axis.resized,
                                              axis.begin + static_cast<std::uint32_t>(i));
      const std::int32_t coefficient = fixed_coefficient(taps.value(position), axis.outputs[i].sum);
      std::int32_t* const sums = sums_of(i);
      for (std::size_t column = 0; column < columns_; ++column) sums[column] += row[column] * coefficient;
    }
  });
}

bool HugeColumns::next_done(const HugeAxis& axis, std::uint32_t position) const noexcept {
  return next_ < axis.outputs.size() && axis.outputs[next_].last <= position + 1;
}

void HugeColumns::write_next(std::uint8_t* out) {
  std::int32_t* const sums = sums_of(next_++);
  std::transform(sums, sums + columns_, out, to_byte);
  std::fill_n(sums, columns_, kHalf);
}

}  // namespace shard::image
