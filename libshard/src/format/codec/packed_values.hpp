// Samples of floats as the bytes that they were computed from, and back: codec packed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/normalization.hpp"

namespace shard {

// The values are those of ValueTable. Const members may be called from several threads at once.
class PackedValues {
 public:
  // Rows and columns of the spec do not count.
  PackedValues(const SampleSpec& spec, const Normalization& normalization);

  // The bytes of a sample of any size, in its order -> the sample.
  void expand(std::span<const std::uint8_t> bytes, std::span<std::byte> sample) const;
  // The inverse. If two bytes become the same value, the result is the lower one. Throws invalid_argument if
  // a value is not a normalised byte value.
  void reduce(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const;

 private:
  template <class Bits>
  void expand_as(std::span<const std::uint8_t> bytes, std::span<std::byte> sample) const;
  template <class Bits>
  void reduce_as(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const;
  void find_lowest() const;
  bool reduce_by_guess(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const;
  int byte_of(std::uint16_t bits, std::size_t channel) const noexcept { return lowest_[channel][bits]; }
  int byte_of(std::uint32_t bits, std::size_t channel) const noexcept {
    return table_.byte_of(bits, channel);
  }

  SampleSpec spec_;
  ValueTable table_;
  bool distinct_ = true;  // no two bytes of a channel give the same value
  // 16-bit dtypes: byte_of() by [channel][bits]; made when first needed, as readers never do.
  mutable std::once_flag lowest_made_;
  mutable std::array<std::vector<std::int16_t>, 4> lowest_;
};

}  // namespace shard
