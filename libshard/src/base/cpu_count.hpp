// How many CPUs this process may use.
#pragma once

#include <filesystem>

namespace shard {

// The CPUs of its affinity mask, or fewer where a CPU quota of its cgroup or of an ancestor allows fewer at a
// time (rounded up: 1.5 CPUs are 2); at least 1. What threads are started by default. `root`: as for
// cgroup_folders().
unsigned cpu_count(const std::filesystem::path& root = "/");

// The smallest CPU quota of this process's cgroup and its ancestors, in CPUs at a time (1.5); 0: there is
// none.
double cpu_quota(const std::filesystem::path& root = "/");

}  // namespace shard
