// A conversion into a folder of this machine: a new data set, or the rest of one; images that are appended; a
// data set that takes the place of another.
#pragma once

#include "shard/convert/convert.hpp"

namespace shard::convert {

// `shards_leave`: finished shards leave the folder (Hooks::published), so that room for a few is enough.
// Errors: those of run().
Summary convert_to_folder(const Options& options, const Hooks& hooks, bool shards_leave = false);

}  // namespace shard::convert
