#include "harness/cpu_facts.hpp"

#include <hwy/targets.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>

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

std::string whole(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
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

std::uint64_t cgroup_available() {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
  std::ifstream limit_in("/sys/fs/cgroup/memory.max");
  std::ifstream used_in("/sys/fs/cgroup/memory.current");
  if (!(limit_in >> limit) || !(used_in >> used)) return MemoryFacts::kUnlimited;  // "max", or no such file
  return limit > used ? limit - used : 0;
}

}  // namespace

double cgroup_quota_cores(const fs::path& root, std::string_view membership) {
  // The line of the unified hierarchy: "0::/user.slice/..."
  std::string group;
  for (std::size_t at = 0; at < membership.size();) {
    const std::size_t end = std::min(membership.find('\n', at), membership.size());
    if (membership.substr(at).starts_with("0::/")) group = membership.substr(at + 4, end - at - 4);
    at = end + 1;
  }
  double cores = 0;
  fs::path folder = root / group;
  for (;;) {
    std::ifstream in(folder / "cpu.max");
    double quota = 0;
    double period = 0;
    if (in >> quota >> period && period > 0)
      cores = cores == 0 ? quota / period : std::min(cores, quota / period);
    if (group.empty()) return cores;
    const std::size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
    folder = root / group;
  }
}

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
  facts.quota_cores = cgroup_quota_cores("/sys/fs/cgroup", whole("/proc/self/cgroup"));
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
  facts.available_bytes = bench::available_memory_bytes();
  facts.cgroup_available_bytes = cgroup_available();
  facts.registered_budget_bytes = default_memory_budget_bytes();  // as make_mapped takes it
  return facts;
}

}  // namespace shard::bench
