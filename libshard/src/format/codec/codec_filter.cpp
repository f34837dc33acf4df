#include "format/codec/codec_filter.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shard {
namespace {

// FilterRows of values; the left neighbour of a value is `step` values before it.
struct FilterRows {
  std::size_t length = 0;
  std::size_t step = 1;
};

FilterRows filter_rows_of(const SampleSpec& spec) {
  if (spec.is_tensor()) return {spec.shape().back(), 1};
  if (spec.layout == Layout::nhwc) return {std::size_t{spec.width} * spec.channels, spec.channels};
  return {spec.width, 1};
}

std::uint16_t fold_difference(unsigned value, unsigned left) noexcept {
  const unsigned difference = (value - left) & 0xffffU;
  const unsigned sign = difference >> 15U;
  return static_cast<std::uint16_t>((difference << 1U) ^ (0U - sign));
}

std::uint16_t unfold_difference(unsigned folded, unsigned left) noexcept {
  return static_cast<std::uint16_t>(((folded >> 1U) ^ (0U - (folded & 1U))) + left);
}

void filter_u16(const FilterRows& rows, std::size_t values, const std::byte* in, std::byte* out) {
  const auto value = [in](std::size_t i) {
    return std::to_integer<unsigned>(in[2 * i]) | std::to_integer<unsigned>(in[2 * i + 1]) << 8U;
  };
  for (std::size_t row = 0; row < values; row += rows.length) {
    for (std::size_t i = row; i < row + rows.length; ++i) {
      const std::uint16_t folded = fold_difference(value(i), i < row + rows.step ? 0 : value(i - rows.step));
      out[i] = static_cast<std::byte>(folded);
      out[values + i] = static_cast<std::byte>(folded >> 8U);
    }
  }
}

void unfilter_u16(const FilterRows& rows, std::size_t values, const std::byte* in, std::byte* out) {
  std::vector<std::uint16_t> many(rows.step > 4 ? rows.step : 0);
  std::uint16_t few[4];
  std::uint16_t* const left = rows.step > 4 ? many.data() : few;
  for (std::size_t row = 0; row < values; row += rows.length) {
    std::fill_n(left, rows.step, std::uint16_t{0});
    for (std::size_t i = row; i < row + rows.length;) {
      for (std::size_t channel = 0; channel < rows.step; ++channel, ++i) {
        const unsigned folded = std::to_integer<unsigned>(in[i]) | std::to_integer<unsigned>(in[values + i])
                                                                       << 8U;
        const std::uint16_t value = unfold_difference(folded, left[channel]);
        left[channel] = value;
        out[2 * i] = static_cast<std::byte>(value);
        out[2 * i + 1] = static_cast<std::byte>(value >> 8U);
      }
    }
  }
}

template <std::size_t kBytes>
void shuffle(std::size_t values, const std::byte* in, std::byte* out) {
  for (std::size_t byte = 0; byte < kBytes; ++byte)
    for (std::size_t i = 0; i < values; ++i) out[byte * values + i] = in[i * kBytes + byte];
}

template <std::size_t kBytes>
void unshuffle(std::size_t values, const std::byte* in, std::byte* out) {
  for (std::size_t i = 0; i < values; ++i)
    for (std::size_t byte = 0; byte < kBytes; ++byte) out[i * kBytes + byte] = in[byte * values + i];
}

}  // namespace

bool is_filtered(const SampleSpec& spec) noexcept {
  return (spec.is_tensor() || spec.dtype == DType::u16 || spec.channels > 4) && size_bytes(spec.dtype) > 1;
}

void filter_sample(const SampleSpec& spec, std::span<const std::byte> sample, std::span<std::byte> out) {
  const std::size_t values = static_cast<std::size_t>(spec.elements());
  if (spec.dtype == DType::u16) return filter_u16(filter_rows_of(spec), values, sample.data(), out.data());
  switch (size_bytes(spec.dtype)) {
    case 2:
      return shuffle<2>(values, sample.data(), out.data());
    case 4:
      return shuffle<4>(values, sample.data(), out.data());
    case 8:
      return shuffle<8>(values, sample.data(), out.data());
    default:
      std::copy(sample.begin(), sample.end(), out.begin());
  }
}

void unfilter_sample(const SampleSpec& spec, std::span<const std::byte> filtered, std::span<std::byte> out) {
  const std::size_t values = static_cast<std::size_t>(spec.elements());
  if (spec.dtype == DType::u16)
    return unfilter_u16(filter_rows_of(spec), values, filtered.data(), out.data());
  switch (size_bytes(spec.dtype)) {
    case 2:
      return unshuffle<2>(values, filtered.data(), out.data());
    case 4:
      return unshuffle<4>(values, filtered.data(), out.data());
    case 8:
      return unshuffle<8>(values, filtered.data(), out.data());
    default:
      std::copy(filtered.begin(), filtered.end(), out.begin());
  }
}

}  // namespace shard
