#include "base/system/machine_check.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string_view>

#include "base/system/cpu_count.hpp"
#include "base/system/system_memory.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr unsigned kFewestCpus = 2;  // one for the loader, one for the program
constexpr std::uint64_t kLeastMemory = std::uint64_t{1} << 30U;
// A loader keeps each shard that it reads open, and so does each worker process of a DataLoader.
constexpr std::uint64_t kFewestDescriptors = 4096;

std::uint64_t meminfo_bytes(const std::filesystem::path& root, std::string_view wanted) {
  std::ifstream in(root / "proc/meminfo");
  std::uint64_t kib = 0;
  for (std::string name, rest; in >> name; std::getline(in, rest))
    if (name == wanted) return in >> kib ? kib << 10U : 0;
  return 0;
}

MachineCheck check_cpus(const MachineFacts& facts) {
  const unsigned online = std::max(facts.cpus_online, facts.cpus);
  MachineCheck check{"CPUs",
                     fmt::format("{} of {} online", facts.cpus, online),
                     fmt::format("at least {}, and no quota below their number", kFewestCpus),
                     {}};
  const bool limited = facts.cpu_quota > 0 && facts.cpu_quota < facts.cpus;
  if (facts.cpu_quota > 0) check.is += fmt::format("; the control group's quota is {:.3g}", facts.cpu_quota);
  if (limited) {
    check.advice = fmt::format(
        "PyTorch and OpenMP start a thread for each of the {} CPUs and are then stopped by the quota: set "
        "OMP_NUM_THREADS={}, or raise the quota (docker --cpus, Kubernetes limits.cpu)",
        facts.cpus, static_cast<unsigned>(std::max(1.0, std::floor(facts.cpu_quota))));
  } else if (facts.cpus < kFewestCpus && online > facts.cpus) {
    check.advice = "give this process more CPUs (taskset -c, docker --cpuset-cpus, Slurm --cpus-per-task)";
  } else if (facts.cpus < kFewestCpus) {
    check.advice = "use a machine with more CPUs: loader and program share this one";
  }
  return check;
}

MachineCheck check_memory(const MachineFacts& facts) {
  const bool granted = facts.cgroup_available_bytes != kNoLimit;
  MachineCheck check{
      "memory",
      fmt::format("{} available of {}; {}", in_gib(facts.available_bytes), in_gib(facts.memory_bytes),
                  granted ? "the control group leaves " + in_gib(facts.cgroup_available_bytes)
                          : "no limit of a control group"),
      "at least " + in_gib(kLeastMemory) + ", better the size of the data set",
      {}};
  if (facts.available_bytes == 0 && facts.memory_bytes == 0) {
    check.is = "not known: /proc/meminfo does not say";
  } else if (granted && facts.cgroup_available_bytes < kLeastMemory) {
    check.advice = "raise the memory limit of the container or job (docker --memory, Slurm --mem)";
  } else if (facts.available_bytes < kLeastMemory) {
    check.advice = "end other programs, or use a machine with more memory";
  }
  return check;
}

MachineCheck check_descriptors(const MachineFacts& facts) {
  const auto text = [](std::uint64_t limit) {
    return limit == kNoLimit ? std::string("no limit") : std::to_string(limit);
  };
  MachineCheck check{"open files",
                     facts.descriptors == facts.descriptors_most
                         ? text(facts.descriptors) + " at most"
                         : fmt::format("{} at most; may be raised to {}", text(facts.descriptors),
                                       text(facts.descriptors_most)),
                     fmt::format("at least {}", kFewestDescriptors),
                     {}};
  if (facts.descriptors >= kFewestDescriptors) return check;
  check.advice = facts.descriptors_most >= kFewestDescriptors
                     ? fmt::format("ulimit -n {} in the shell that starts the program",
                                   std::min<std::uint64_t>(facts.descriptors_most, 65536))
                     : "raise the hard limit: /etc/security/limits.conf, LimitNOFILE= of systemd, "
                       "docker --ulimit nofile=65536";
  return check;
}

}  // namespace

std::string in_gib(std::uint64_t bytes) {
  const double gib = static_cast<double>(bytes) / static_cast<double>(std::uint64_t{1} << 30U);
  return gib >= 0.995 || bytes == 0 ? fmt::format("{:.1f} GiB", gib) : fmt::format("{:.2f} GiB", gib);
}

MachineFacts read_machine(const std::filesystem::path& root) {
  MachineFacts facts;
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.cpus_online = online > 0 ? static_cast<unsigned>(online) : 0;
  facts.cpus = affinity_cpu_count();
  facts.cpu_quota = cpu_quota(root);
  facts.memory_bytes = meminfo_bytes(root, "MemTotal:");
  facts.available_bytes = meminfo_bytes(root, "MemAvailable:");
  facts.cgroup_available_bytes = cgroup_available_bytes(root);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.descriptors = limit.rlim_cur == RLIM_INFINITY ? kNoLimit : limit.rlim_cur;
    facts.descriptors_most = limit.rlim_max == RLIM_INFINITY ? kNoLimit : limit.rlim_max;
  }
  return facts;
}

std::vector<MachineCheck> check_machine(const MachineFacts& facts) {
  return {check_cpus(facts), check_memory(facts), check_descriptors(facts)};
}

MachineCheck check_uring(const std::string& problem) {
  MachineCheck check{"io_uring", problem.empty() ? "works" : problem, "works", {}};
  if (!problem.empty())
    check.advice =
        "allow it (sysctl kernel.io_uring_disabled=0, the seccomp profile of the container); until then the "
        "loader's transport direct reads with threads, which take more CPU time";
  return check;
}

}  // namespace shard
