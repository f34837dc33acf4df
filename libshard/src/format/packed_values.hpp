// The values that the bytes of a pixel become, and back: codec packed of float samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "shard/sample_spec.hpp"

namespace shard {

// (float(byte) / 255 - mean) / std, each step rounded to float32, then rounded to the dtype. A fourth channel
// has mean 0 and std 1. Const members may be called from several threads at once.
class ValueTable {
 public:
  ValueTable(const SampleSpec& spec, const Normalization& normalization);

  // spec.elements() bytes in the sample's order -> the sample.
  void expand(std::span<const std::uint8_t> bytes, std::span<std::byte> sample) const;
  // The way back; where two bytes become the same value the lower one. Throws invalid_argument when a value
  // is none that a byte becomes.
  void reduce(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const;

 private:
  template <class Bits>
  void expand_as(std::span<const std::uint8_t> bytes, std::span<std::byte> sample) const;
  template <class Bits>
  void reduce_as(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const;
  void find_lowest() const;
  int guess(std::uint32_t bits, std::size_t channel) const noexcept;
  bool reduce_by_guess(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const;
  int byte_of(std::uint16_t bits, std::size_t channel) const noexcept { return lowest_[channel][bits]; }
  int byte_of(std::uint32_t bits, std::size_t channel) const noexcept;  // -1: none

  SampleSpec spec_;
  std::array<float, 4> mean_{};
  std::array<float, 4> std_{};
  bool distinct_ = true;  // no two bytes of a channel give the same value
  std::array<std::array<std::uint32_t, 256>, 4>
      bits_{};  // [channel][byte], in the low half for 16-bit dtypes
  // 16-bit dtypes: [channel][bits]; made when first needed, as readers never do.
  mutable std::once_flag lowest_made_;
  mutable std::array<std::vector<std::int16_t>, 4> lowest_;
};

}  // namespace shard
