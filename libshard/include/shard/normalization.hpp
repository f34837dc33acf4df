// Normalisation: the value that a byte of a pixel becomes, and the way back.
//
//   value = (float(byte) / 255 - mean) / std      each step rounded to float32
//                                                 then rounded once to the dtype, to nearest, ties to even
//
// A value of 16 bits is divided by 65535 instead of 255.
//
// This is the contract of the whole project: the converter stores these bits, codec packed computes them from
// the bytes that it keeps, the loader delivers them on every device, and shardctl turns them back into
// pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/dtype.hpp"

namespace shard {

// Mean and std by channel. Float samples are stored with it applied. For u8 and u16 samples it is only
// recorded, to be applied after loading.
//
// Both have the same length: 3 (red, green, blue), or, for samples of four and more channels, the number of
// channels. Channels beyond the length have mean 0 and std 1.
struct Normalization {
  std::vector<float> mean{0.0F, 0.0F, 0.0F};
  std::vector<float> std{1.0F, 1.0F, 1.0F};
  bool operator==(const Normalization&) const = default;
};

inline float mean_of(const Normalization& normalization, std::size_t channel) noexcept {
  return channel < normalization.mean.size() ? normalization.mean[channel] : 0.0F;
}
inline float std_of(const Normalization& normalization, std::size_t channel) noexcept {
  return channel < normalization.std.size() ? normalization.std[channel] : 1.0F;
}
// Whether every channel has mean 0 and std 1.
bool is_identity(const Normalization& normalization) noexcept;
// One that was given for samples of one or two channels, with as many numbers, as it is recorded: with three.
Normalization for_channels(Normalization normalization, std::uint32_t channels);
// The largest value of a dtype that is normalised: 255 of u8, 65535 of u16, and 1 of floats, which are not
// divided.
constexpr float full_scale(DType dtype) noexcept {
  return dtype == DType::u8 ? 255.0F : dtype == DType::u16 ? 65535.0F : 1.0F;
}

// The value before it is rounded to the dtype.
float normalized_value(std::uint8_t byte, float mean, float std) noexcept;

// The bit pattern of a value rounded to f16, bf16 or f32; that of 16-bit types lies in the low half.
std::uint32_t rounded_bits(DType dtype, float value) noexcept;
// The way back, which is exact.
float value_of_bits(DType dtype, std::uint32_t bits) noexcept;

// All values of one dtype, of up to four channels of bytes. Immutable use from several threads is safe.
struct ValueTable {
  using Channel = std::array<std::uint32_t, 256>;

  ValueTable() = default;
  // `dtype`: f16, bf16 or f32. `channels`: 1 to 4. Takes some microseconds.
  ValueTable(DType dtype, const Normalization& normalization, std::uint32_t channels) noexcept;

  // The byte that becomes this value, the lowest of several; -1: none does.
  int byte_of(std::uint32_t bits, std::size_t channel) const noexcept;
  // The same; for a value that no byte becomes, the byte whose value is nearest (NaN: 0).
  std::uint8_t nearest_byte(std::uint32_t bits, std::size_t channel) const noexcept;

  DType dtype = DType::f32;
  std::uint32_t channels = 0;
  std::array<float, 4> mean{};  // by channel
  std::array<float, 4> std{};
  std::array<Channel, 4> bits{};  // [channel][byte], as rounded_bits() gives them
};

}  // namespace shard
