#include "harness/cpu_facts.hpp"

#include <hwy/targets.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/system/cpu_count.hpp"
#include "base/system/system_memory.hpp"
#include "harness/machine.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// "32K", "1024K", "36M"
std::uint64_t cache_size(std::ifstream in) {
  std::uint64_t size = 0;
  char unit = 0;
  in >> size >> unit;
  return unit == 'K' ? size << 10U : unit == 'M' ? size << 20U : size;
}

// RLIM_INFINITY, and cgroup_available_bytes() without a limit.
Json limit(std::uint64_t value) { return value == ~std::uint64_t{0} ? Json() : Json(value); }

}  // namespace

Json read_caches(const fs::path& folder) {
  std::vector<Json> caches;
  for (int index = 0; index < 16; ++index) {
    const fs::path one = folder / ("index" + std::to_string(index));
    int level = 0;
    std::string type;
    std::ifstream(one / "type") >> type;
    const std::uint64_t size = cache_size(std::ifstream(one / "size"));
    if (std::ifstream(one / "level") >> level && size > 0)
      caches.push_back({{"level", level}, {"type", type}, {"size_bytes", size}});
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const Json& a, const Json& b) { return a["level"] < b["level"]; });
  return caches;
}

Json cpu_facts() {
  const double quota = cpu_quota();
  std::vector<std::string> simd;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1)
    simd.emplace_back(hwy::TargetName(left & -left));
  return {{"quota_cores", quota > 0 ? Json(quota) : Json()},
          {"caches", read_caches("/sys/devices/system/cpu/cpu0/cache")},
          {"simd", simd.empty() ? "none" : simd.front()},
          {"simd_available", simd}};
}

Json memory_facts() {
  rlimit locked{};
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  return {{"available_bytes", meminfo_bytes("MemAvailable")},
          {"cgroup_available_bytes", limit(cgroup_available_bytes())},
          {"memlock_soft_bytes", limit(locked.rlim_cur)},
          {"memlock_hard_bytes", limit(locked.rlim_max)},
          {"registered_budget_bytes", default_memory_budget_bytes()}};
}

}  // namespace shard::bench
