// What of this machine decides how fast data are converted and loaded, compared with what it should be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shard {

// One line of `shardctl doctor` and of `python -m shardloader doctor`.
struct MachineCheck {
  std::string name;       // "memory"
  std::string is;         // "2.0 GiB of 15.6 GiB available"
  std::string should_be;  // "at least 1.0 GiB available"
  std::string advice;     // what to do; empty: it is as it should be
};

// 0: not known, or no limit.
struct MachineFacts {
  unsigned cpus_online = 0;
  unsigned cpus = 0;     // in this process's affinity mask
  double cpu_quota = 0;  // of its cgroup and ancestors, in CPUs
  std::uint64_t memory_bytes = 0;
  std::uint64_t available_bytes = 0;  // that programs can get without swapping, without the cgroup's limit
  // What the memory cgroups leave; the largest value: they have no limit.
  std::uint64_t cgroup_available_bytes = 0;
  std::uint64_t descriptors = 0;       // this process may have open: the soft limit
  std::uint64_t descriptors_most = 0;  // the hard limit, to which a process may raise its own
};

// What is not known is never a reason to throw. `root`: as for cgroup_folders().
MachineFacts read_machine(const std::filesystem::path& root = "/");

// cpus, memory and descriptors, in this order. A pure function.
std::vector<MachineCheck> check_machine(const MachineFacts& facts);

// Of io_uring. `problem`: why the loader cannot use it; empty: it works.
MachineCheck check_uring(const std::string& problem);

std::string in_gib(std::uint64_t bytes);  // "15.6 GiB", "0.02 GiB"

}  // namespace shard
