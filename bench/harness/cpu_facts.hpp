// The processor and memory as this process may use them, as the JSON of `shardbench device` has them.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace shard::bench {

// quota_cores: the smallest CPU quota of the cgroup and its ancestors, or null; caches: those of the first
// core; simd: the instruction set that our vector code uses; simd_available: best first.
nlohmann::ordered_json cpu_facts();

// Bytes; null: no limit. registered_budget_bytes: the loader's default for registered shards.
nlohmann::ordered_json memory_facts();

// Level, type and size_bytes of /sys/devices/system/cpu/cpu0/cache, ascending levels.
nlohmann::ordered_json read_caches(const std::filesystem::path& folder);

}  // namespace shard::bench
