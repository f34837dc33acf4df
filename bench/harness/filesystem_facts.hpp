// What matters about the filesystem under a path for reading and writing shards, as in the JSON of
// `shardbench device`.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace shard::bench {

// path, type ("ext4", "nfs4"; "unknown" where /proc/self/mountinfo does not say), source ("/dev/nvme0n1p2"),
// mount, size_bytes, free_bytes (that this user may fill), block_bytes, rotational (of the disk under it;
// null: not one disk, or not said), direct ("works", or why there is no O_DIRECT), direct_alignment (of
// offsets, as statx() states it; 0: not stated). Or path and problem: why nothing is known.
//
// Writes one block into a file without a name (or with a name for a moment, if the filesystem needs one),
// which is removed at once. What the path lacks is never a reason to throw.
nlohmann::ordered_json filesystem_facts(const std::filesystem::path& path);

}  // namespace shard::bench
