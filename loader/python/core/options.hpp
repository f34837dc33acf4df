// LoaderOptions from a dict with a value for each of its fields.
#pragma once

#include <vector>

#include "common.hpp"
#include "shard/loader/loader.hpp"

namespace shard::python {

// Keys are the keywords of shardloader.Loader. Throws invalid_argument naming the keyword.
LoaderOptions loader_options(const nb::dict& given);
// Of the views alone: those of view 0, and further_views. At least one. Likewise.
std::vector<TransformOptions> views_of(const nb::dict& given);

}  // namespace shard::python
