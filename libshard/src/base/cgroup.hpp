// Where this process stands in the control groups (cgroups) of Linux, version 1 and 2.
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

// The folders whose limits of `controller` ("memory" or "cpu") hold for this process: its own group and all
// ancestors that can be seen, the innermost first. Empty where there are none. `root` stands before /proc and
// /sys (for tests). Never throws because of what it finds there.
std::vector<CgroupFolder> cgroup_folders(std::string_view controller,
                                         const std::filesystem::path& root = "/");

// The number that a file begins with; nothing when it cannot be read or begins with something else ("max").
std::optional<std::uint64_t> read_number(const std::filesystem::path& file);

}  // namespace shard
