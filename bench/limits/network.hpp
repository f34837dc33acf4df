// What a server gives, without the loader.
#pragma once

#include <filesystem>

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::bench {

// Bytes per second of the shards of a data set on a server: ranges of 8 MiB, as many at a time as the
// client allows, thrown away. Ends after `seconds`, or with the last shard. `folder` is an address.
// Errors: those of requests.
double network_rate(const std::filesystem::path& folder, const DatasetInfo& info, double seconds);
inline constexpr const char* kNetworkIs =
    "the server: ranges of 8 MiB of the same files, 64 at a time, thrown away";

}  // namespace shard::bench
