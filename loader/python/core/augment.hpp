// Operations of augmentation from Python's (name, parameters).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common.hpp"
#include "shard/loader/augment.hpp"
#include "shard/loader/transform.hpp"

namespace shard::python {

// A list of tuples (name, dict), those of this view. Throws invalid_argument naming view,
// operation and parameter.
std::vector<Operation> operations_of(const nb::list& given, std::size_t view);

// Crop (top, left, height, width, flip), size of the view, geometric instructions and matrix of one sample.
// `shape`: rows, columns and channels as it is stored.
nb::tuple draw_places(TransformOptions view, const std::array<std::uint32_t, 3>& shape, std::uint64_t seed,
                      std::uint64_t epoch, std::uint64_t sample, std::uint32_t number);

}  // namespace shard::python
