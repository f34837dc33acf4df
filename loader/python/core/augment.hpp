// Operations of augmentation from Python's (name, parameters).
#pragma once

#include <vector>

#include "common.hpp"
#include "shard/loader/augment.hpp"

namespace shard::python {

// A list of tuples (name, dict), those of this view. Throws invalid_argument naming view, operation and parameter.
std::vector<Operation> operations_of(const nb::list& given, std::size_t view);

}  // namespace shard::python
