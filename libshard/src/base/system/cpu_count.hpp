// How many CPUs this process may use.
#pragma once

#include <filesystem>

namespace shard {

// The number of CPUs in its affinity mask, or the CPU quota of its cgroup or of an ancestor if that is
// smaller (rounded up: 1.5 CPUs are 2). At least 1. This is the default number of threads. `root`: as for
// cgroup_folders().
unsigned cpu_count(const std::filesystem::path& root = "/");

// The number of CPUs in its affinity mask. At least 1.
unsigned affinity_cpu_count();

// The smallest CPU quota of this process's cgroup and its ancestors, in CPUs (1.5). 0: there is no quota.
double cpu_quota(const std::filesystem::path& root = "/");

}  // namespace shard
