// The filter before codec zstd: it changes the order and differences of bytes, so that zstd finds more in
// samples whose elements have several bytes (docs/format.md, "Codec zstd").
//
//   u16     each value becomes its difference from the value of the same channel to its left (0 before the
//           first column; in a tensor, the element before it on the last axis), modulo 65536, folded:
//           0 -1 1 -2 2 ... become 0 1 2 3 4 ...
//   all     then the lowest bytes of all values, followed by the next bytes of all values, ...
//
// Samples that version 1 of the profile can hold, and elements of one byte, are not filtered.
#pragma once

#include <cstddef>
#include <span>

#include "shard/dataset_spec.hpp"

namespace shard {

bool is_filtered(const SampleSpec& spec) noexcept;
// `sample` and `out`: spec.size_bytes() bytes that do not overlap. Pure; any input is possible.
void filter_sample(const SampleSpec& spec, std::span<const std::byte> sample, std::span<std::byte> out);
void unfilter_sample(const SampleSpec& spec, std::span<const std::byte> filtered, std::span<std::byte> out);

}  // namespace shard
