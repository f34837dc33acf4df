// Samples back to pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/normalization.hpp"

namespace shard::ctl {

// Undoes cast, normalisation and layout: for each stored value the byte it was made from. Exact for every
// value that (byte / 255 - mean) / std rounds to, as long as no two bytes share one (bfloat16 with a small
// std has such pairs: the lower byte is taken); any other value goes to the nearest byte. Const members may
// be called from several threads at once.
class Denormalizer {
 public:
  // Samples of images: throws unsupported for layout tensor. A value of u16 becomes the nearest of byte x
  // 257; floats of more than four channels become the nearest byte.
  Denormalizer(const SampleSpec& spec, const Normalization& normalization);

  const SampleSpec& spec() const noexcept { return spec_; }
  // `sample`: a whole sample, of any size if the spec is free; `out`: its elements as bytes [row, column,
  // channel], whatever the layout stored.
  void bytes(std::span<const std::byte> sample, std::span<std::uint8_t> out) const;
  // The same as RGB [row, column, 3]: one or two channels become gray, a fourth is left out. `out` is height
  // x width x 3.
  void rgb(std::span<const std::byte> sample, std::span<std::uint8_t> out) const;
  // Whether bytes() of the sample are all that it says: no value lies between two bytes or beyond them.
  bool are_bytes(std::span<const std::byte> sample, std::span<const std::uint8_t> bytes) const;
  // The same as numbers, as `mean` and `std` of a conversion take them: a byte / 255, a value of u16 / 65535,
  // a float with its normalization undone.
  void values(std::span<const std::byte> sample, std::span<double> out) const;

 private:
  template <class Visit>
  bool each(std::uint64_t elements, const Visit& visit) const;
  double exact_value(std::span<const std::byte> sample, std::uint64_t element, std::uint32_t channel) const;
  std::uint8_t value(std::span<const std::byte> sample, std::uint64_t element, std::uint32_t channel) const;
  std::uint8_t nearest_byte(std::uint32_t bits, std::uint32_t channel) const;

  SampleSpec spec_;
  ValueTable values_;
  Normalization normalization_;
  std::array<std::vector<std::uint8_t>, 4> table_;  // 16-bit dtypes: nearest_byte() by [channel][bits]
};

}  // namespace shard::ctl
