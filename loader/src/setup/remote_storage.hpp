// Where the shards of a data set on servers lie on this machine, from a loader's options.
#pragma once

#include "shard/dataset.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

// The data set with its cache and its transit area. Sets options.remote.transit_bytes to what is used: 0
// where there is no transit area. A local data set is returned as it is. Errors: io.
Dataset with_storage(Dataset data, LoaderOptions& options);

}  // namespace shard
