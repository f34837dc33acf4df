// What a decided append leaves in its folder until it is finished (append.hpp has the whole way).
#pragma once

#include <filesystem>

namespace shard::convert {

// Removes the staging folder of an append, the log by which a stopped run is recognised last. Errors: io.
void clear_append(const std::filesystem::path& out);
// Finishes an append that was stopped after it was decided. The caller holds the exclusive lock of the
// folder. Returns true if the data set has grown. Errors: io, corrupt; resource (where locks exclude nobody,
// another process has finished it).
bool finish_append(const std::filesystem::path& out);

}  // namespace shard::convert
