// The filesystem under a path, as far as it decides how shards are read and written there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shard::bench {

struct FilesystemFacts {
  std::filesystem::path path;
  std::string problem;  // why nothing is known; empty: the rest holds
  std::string type;     // "ext4", "xfs", "overlay", "nfs4"; "unknown" where /proc/self/mountinfo does not say
  std::string source;   // "/dev/nvme0n1p2", "server:/export"
  std::string mount;
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;  // that this user may fill
  std::uint64_t block_bytes = 0;
  std::optional<bool> rotational;      // of the disk under it; none: not one disk, or not said
  std::string direct;                  // O_DIRECT: "works", or why not
  std::uint32_t direct_alignment = 0;  // of offsets, as statx() states it; 0: not stated
  bool direct_works() const noexcept { return direct == "works"; }
};

// Writes one block into a file without a name (or with one for a moment, where the filesystem cannot do
// without), which goes at once. Never throws for what a path lacks: `problem` says it.
FilesystemFacts filesystem_facts(const std::filesystem::path& path);

struct Mount {
  std::string device;  // "259:2"
  std::string folder, type, source;
};
// The entry of /proc/self/mountinfo that `path` (absolute, without links) lies on: the last one of the
// longest mount point.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view path);

}  // namespace shard::bench
