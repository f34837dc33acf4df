// The processor and memory as this process may use them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shard::bench {

struct CacheFacts {
  int level = 0;
  std::string type;  // "Data", "Instruction", "Unified"
  std::uint64_t size_bytes = 0;
};

struct CpuFacts {
  double quota_cores = 0;          // cgroup's, of all levels the smallest; 0: none
  std::vector<CacheFacts> caches;  // of the first core
  std::string simd;                // the instruction set that our vector code takes: "AVX2"
  std::vector<std::string> simd_available;
};
CpuFacts cpu_facts();

struct MemoryFacts {
  std::uint64_t locked_soft = 0;  // RLIMIT_MEMLOCK; kUnlimited: no limit
  std::uint64_t locked_hard = 0;
  std::uint64_t available_bytes = 0;          // MemAvailable
  std::uint64_t cgroup_available_bytes = 0;   // what the group's limit leaves; kUnlimited: no limit
  std::uint64_t registered_budget_bytes = 0;  // the loader's default for registered shards
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
};
MemoryFacts memory_facts();

// Of /sys/devices/system/cpu/cpu0/cache, ascending.
std::vector<CacheFacts> read_caches(const std::filesystem::path& folder);

}  // namespace shard::bench
