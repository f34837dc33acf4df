// The filesystem under a path: what it is, how much room it has, and how files on it can be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/machine_check.hpp"

namespace shard {

struct Disk {
  std::string problem;  // why nothing is known; else empty
  std::string type;     // "ext4", "nfs4"; "unknown" where /proc/self/mountinfo does not say
  std::string source;   // "/dev/nvme0n1p2"
  std::string mount;
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;  // that this user may fill
  std::uint64_t block_bytes = 0;
  std::optional<bool> rotational;      // of the disk under it; nothing: it is not one disk, or not said
  std::string direct;                  // "works", or why there is no O_DIRECT
  std::uint32_t direct_alignment = 0;  // of offsets, as statx() states it; 0: not stated
};

// Writes one block into a file without a name in a folder (or with a name for a moment, if the filesystem
// needs one), which is removed at once. What the path lacks is never a reason to throw.
Disk read_disk(const std::filesystem::path& path);

// disk and O_DIRECT, in this order; the first alone where nothing is known. A pure function.
std::vector<MachineCheck> check_disk(const std::filesystem::path& path, const Disk& disk);

struct Mount {
  std::string device;  // "259:2"
  std::string folder, type, source;
};
// The entry of /proc/self/mountinfo that `path` (absolute, without links) lies on: the last one of the
// longest mount point.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view path);

}  // namespace shard
