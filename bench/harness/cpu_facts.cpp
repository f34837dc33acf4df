#include "harness/cpu_facts.hpp"

#include <hwy/targets.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "base/cpu_count.hpp"
#include "base/system_memory.hpp"
#include "harness/machine.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "32K", "1024K", "36M"
std::uint64_t cache_size(const std::string& text) {
  std::size_t end = 0;
  std::uint64_t size = 0;
  for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end)
    size = size * 10 + static_cast<std::uint64_t>(text[end] - '0');
  if (end < text.size() && text[end] == 'K') size <<= 10U;
  if (end < text.size() && text[end] == 'M') size <<= 20U;
  return size;
}

std::uint64_t limit_bytes(rlim_t value) {
  return value == RLIM_INFINITY ? MemoryFacts::kUnlimited : static_cast<std::uint64_t>(value);
}

}  // namespace

std::vector<CacheFacts> read_caches(const fs::path& folder) {
  std::vector<CacheFacts> caches;
  for (int index = 0; index < 16; ++index) {
    const fs::path one = folder / ("index" + std::to_string(index));
    CacheFacts cache{0, first_line(one / "type"), cache_size(first_line(one / "size"))};
    if (std::ifstream in(one / "level"); in >> cache.level && cache.size_bytes > 0) caches.push_back(cache);
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const CacheFacts& a, const CacheFacts& b) { return a.level < b.level; });
  return caches;
}

CpuFacts cpu_facts() {
  CpuFacts facts;
  facts.quota_cores = cpu_quota();
  facts.caches = read_caches("/sys/devices/system/cpu/cpu0/cache");
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1)
    facts.simd_available.emplace_back(hwy::TargetName(left & -left));  // best first
  facts.simd = facts.simd_available.empty() ? "none" : facts.simd_available.front();
  return facts;
}

MemoryFacts memory_facts() {
  MemoryFacts facts;
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0) {
    facts.locked_soft = limit_bytes(locked.rlim_cur);
    facts.locked_hard = limit_bytes(locked.rlim_max);
  }
  facts.available_bytes = meminfo_bytes("MemAvailable");
  facts.cgroup_available_bytes = cgroup_available_bytes();
  facts.registered_budget_bytes = default_memory_budget_bytes();  // as transport mapped takes it
  return facts;
}

}  // namespace shard::bench
