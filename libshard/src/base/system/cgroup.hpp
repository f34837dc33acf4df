// The control groups (cgroups) of Linux, version 1 and 2, that this process belongs to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace shard {

struct CgroupFolder {
  std::filesystem::path path;
  int version = 2;
};

// The folders whose limits of `controller` ("memory" or "cpu") apply to this process: its own group and all
// visible ancestors, the innermost first. May be empty. `root` is put before /proc and /sys (for tests). What
// it finds there is never a reason to throw.
std::vector<CgroupFolder> cgroup_folders(std::string_view controller,
                                         const std::filesystem::path& root = "/");

// The number at the start of a file. Nothing if it cannot be read or starts with something else ("max").
std::optional<std::uint64_t> read_number(const std::filesystem::path& file);

}  // namespace shard
