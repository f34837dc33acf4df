#include "format/codec/packed_values.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "shard/error.hpp"

namespace shard {
namespace {

template <std::size_t kChannels, class Body>
void for_each_interleaved(std::size_t elements, const Body& body) {
  for (std::size_t element = 0; element < elements; element += kChannels)
    for (std::size_t channel = 0; channel < kChannels; ++channel) body(element + channel, channel);
}

// Calls body(element, channel) in the order in which the elements are stored. The number of channels is known
// to the compiler, which is worth a factor of two.
template <class Body>
void for_each_element(const SampleSpec& spec, std::size_t elements, const Body& body) {
  const std::size_t pixels = elements / spec.channels;
  if (spec.layout == Layout::nchw) {
    for (std::size_t channel = 0; channel < spec.channels; ++channel)
      for (std::size_t i = 0; i < pixels; ++i) body(channel * pixels + i, channel);
  } else if (spec.channels == 1) {
    for_each_interleaved<1>(elements, body);
  } else if (spec.channels == 2) {
    for_each_interleaved<2>(elements, body);
  } else if (spec.channels == 3) {
    for_each_interleaved<3>(elements, body);
  } else {
    for_each_interleaved<4>(elements, body);
  }
}

// The byte from which a float32 was computed, except for rounding errors; the caller checks it.
int guess(const ValueTable& table, std::uint32_t bits, std::size_t channel) noexcept {
  const float byte = (std::bit_cast<float>(bits) * table.std[channel] + table.mean[channel]) * 255.0F + 0.5F;
  return static_cast<int>(byte > 0.0F ? (byte < 255.0F ? byte : 255.0F) : 0.0F);  // NaN: 0
}

}  // namespace

PackedValues::PackedValues(const SampleSpec& spec, const Normalization& normalization)
    : spec_(spec), table_(spec.dtype, normalization, spec.channels) {
  for (std::size_t channel = 0; channel < spec.channels; ++channel)
    for (std::size_t byte = 1; byte < 256; ++byte)
      distinct_ = distinct_ && table_.bits[channel][byte] != table_.bits[channel][byte - 1];
}

void PackedValues::find_lowest() const {
  for (std::size_t channel = 0; channel < spec_.channels; ++channel) {
    lowest_[channel].assign(65536, -1);
    for (std::size_t byte = 256; byte-- > 0;)
      lowest_[channel][table_.bits[channel][byte]] = static_cast<std::int16_t>(byte);
  }
}

// The fast path: float32 values that were computed from bytes, for which the guesses are right. False: a
// guess was wrong.
bool PackedValues::reduce_by_guess(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const {
  if (!distinct_) return false;
  std::uint32_t wrong = 0;
  for_each_element(spec_, bytes.size(), [&](std::size_t element, std::size_t channel) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, sample.data() + element * sizeof bits, sizeof bits);
    const int byte = guess(table_, bits, channel);
    wrong |= table_.bits[channel][static_cast<std::size_t>(byte)] ^ bits;
    bytes[element] = static_cast<std::uint8_t>(byte);
  });
  return wrong == 0;
}

template <class Bits>
void PackedValues::expand_as(std::span<const std::uint8_t> bytes, std::span<std::byte> sample) const {
  std::array<std::array<Bits, 256>, 4> table;
  for (std::size_t channel = 0; channel < spec_.channels; ++channel)
    for (std::size_t byte = 0; byte < 256; ++byte)
      table[channel][byte] = static_cast<Bits>(table_.bits[channel][byte]);
  for_each_element(spec_, bytes.size(), [&](std::size_t element, std::size_t channel) {
    std::memcpy(sample.data() + element * sizeof(Bits), &table[channel][bytes[element]], sizeof(Bits));
  });
}

template <class Bits>
void PackedValues::reduce_as(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const {
  for_each_element(spec_, bytes.size(), [&](std::size_t element, std::size_t channel) {
    Bits bits{};
    std::memcpy(&bits, sample.data() + element * sizeof(Bits), sizeof(Bits));
    const int byte = byte_of(bits, channel);
    if (byte < 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("codec packed: value {} of a sample (bits {:#x}, channel {}) is not a "
                              "normalised byte value; use codec none or zstd",
                              element, bits, channel));
    bytes[element] = static_cast<std::uint8_t>(byte);
  });
}

void PackedValues::expand(std::span<const std::uint8_t> bytes, std::span<std::byte> sample) const {
  if (size_bytes(spec_.dtype) == 2)
    expand_as<std::uint16_t>(bytes, sample);
  else
    expand_as<std::uint32_t>(bytes, sample);
}

void PackedValues::reduce(std::span<const std::byte> sample, std::span<std::uint8_t> bytes) const {
  if (size_bytes(spec_.dtype) != 2) {
    if (!reduce_by_guess(sample, bytes)) reduce_as<std::uint32_t>(sample, bytes);
    return;
  }
  std::call_once(lowest_made_, [this] { find_lowest(); });
  reduce_as<std::uint16_t>(sample, bytes);
}

}  // namespace shard
