// LoaderOptions from a dict with a value for each of its fields.
#pragma once

#include "common.hpp"
#include "shard/loader/loader.hpp"

namespace shard::python {

// Keys are the keywords of shardloader.Loader. Throws invalid_argument naming the keyword.
LoaderOptions loader_options(const nb::dict& given);
// Of one view. Likewise.
TransformOptions transform_options_of(const nb::dict& given);

}  // namespace shard::python
