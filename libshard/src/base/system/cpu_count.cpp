#include "base/system/cpu_count.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <thread>

#include "base/system/cgroup.hpp"

namespace shard {

namespace {

// CPUs at a time; 0: no quota.
double cpus_of_quota(const CgroupFolder& folder) {
  std::uint64_t quota = 0;
  std::uint64_t period = 0;
  if (folder.version == 2) {
    std::ifstream in(folder.path / "cpu.max");  // "150000 100000", or "max 100000"
    if (!(in >> quota >> period)) period = 0;
  } else {
    quota = read_number(folder.path / "cpu.cfs_quota_us").value_or(0);  // -1: none
    period = read_number(folder.path / "cpu.cfs_period_us").value_or(0);
  }
  return quota == 0 || period == 0 ? 0 : static_cast<double>(quota) / static_cast<double>(period);
}

}  // namespace

unsigned affinity_cpu_count() {
  constexpr int kMostCpus = 1 << 16;
  for (int cpus = 1024; cpus <= kMostCpus; cpus *= 2) {  // the kernel refuses a mask that is too small
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int error = errno;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return static_cast<unsigned>(std::max(1, count));
    if (error != EINVAL) break;
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

double cpu_quota(const std::filesystem::path& root) {
  double least = 0;
  for (const CgroupFolder& folder : cgroup_folders("cpu", root))
    if (const double cpus = cpus_of_quota(folder); cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  return least;
}

unsigned cpu_count(const std::filesystem::path& root) {
  const unsigned cpus = affinity_cpu_count();
  const double quota = std::ceil(cpu_quota(root));
  return quota > 0 && quota < cpus ? static_cast<unsigned>(quota) : cpus;
}

}  // namespace shard
