// What a sample is: element type, axes, how it was normalised, and the pipeline that made it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "shard/dtype.hpp"

namespace shard {

// (byte / 255 - mean[c]) / std[c], all in float32, c = red, green, blue.
// Float samples are stored with it applied. For u8 samples it is only recorded, to be applied after loading.
struct Normalization {
  std::array<float, 3> mean{0.0F, 0.0F, 0.0F};
  std::array<float, 3> std{1.0F, 1.0F, 1.0F};
  bool operator==(const Normalization&) const = default;
};

struct SampleSpec {
  // u8, f16, bf16 or f32.
  DType dtype = DType::f16;
  Layout layout = Layout::nchw;
  // 1 to 4.
  std::uint32_t channels = 3;
  // Rows and columns, 1 to 65535.
  std::uint32_t height = 224;
  std::uint32_t width = 224;

  std::uint64_t elements() const noexcept { return std::uint64_t{channels} * height * width; }
  std::uint64_t size_bytes() const noexcept { return elements() * shard::size_bytes(dtype); }
  // [channels, height, width] or [height, width, channels], depending on the layout.
  std::array<std::uint32_t, 3> shape() const noexcept;
  // Throws invalid_argument, naming the field and its bounds.
  void check() const;
  bool operator==(const SampleSpec&) const = default;
};

// How the samples were made: "filter" -> "bilinear", "resize" -> "256", ... Keys [a-z_]+, values UTF-8.
using Pipeline = std::map<std::string, std::string>;

// Codec of stored samples: "none", "zstd" with its level, or "packed" (docs/format.md).
struct Codec {
  enum class Kind : std::uint8_t { none, zstd, packed };
  Kind kind = Kind::none;
  // zstd: 1 to 19.
  int level = 3;
  bool operator==(const Codec&) const = default;
};
std::string to_string(const Codec& codec);      // "none", "zstd:3", "packed"
Codec codec_from_string(const std::string& s);  // throws invalid_argument

}  // namespace shard
