// numpy's .npy format, as it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/dataset_spec.hpp"

namespace shard::ctl {

// The header of numpy's .npy format, version 1.0 (numpy/lib/format.py): padded so that the data begins at a
// multiple of 64.
std::string npy_header(std::string_view dtype, const std::vector<std::uint64_t>& shape);

// numpy has no bfloat16; the same numbers as float32, little-endian.
void widen_bf16(std::span<const std::byte> bf16, std::span<std::byte> f32);

// A file with one sample, in its shape. bfloat16 as float32.
std::vector<std::byte> npy_sample(const SampleSpec& spec, std::span<const std::byte> sample);

}  // namespace shard::ctl
