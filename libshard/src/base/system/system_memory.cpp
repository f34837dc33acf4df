#include "base/system/system_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/system/cgroup.hpp"
#include "base/text/number.hpp"

namespace shard {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostRanks = 4096;

std::uint64_t mem_available(const fs::path& root) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    std::uint64_t kib = 0;
    if (name == "MemAvailable:") return in >> kib ? kib << 10U : kUnlimited;
  }
  return kUnlimited;
}

// Bytes of page cache that the kernel can drop at once.
std::uint64_t clean_cache(const CgroupFolder& folder) {
  // Version 1 has a sum over the groups below under names of their own.
  const std::string prefix = folder.version == 1 ? "total_" : "";
  const std::string dirty = folder.version == 1 ? "total_dirty" : "file_dirty";
  const std::string writeback = folder.version == 1 ? "total_writeback" : "file_writeback";
  std::uint64_t cache = 0;
  std::uint64_t busy = 0;
  std::ifstream in(folder.path / "memory.stat");
  std::uint64_t value = 0;
  for (std::string name; in >> name >> value;) {
    if (name == prefix + "inactive_file" || name == prefix + "active_file") cache += value;
    if (name == dirty || name == writeback) busy += value;
  }
  return cache > busy ? cache - busy : 0;
}

std::uint64_t room_in(const CgroupFolder& folder) {
  const bool v2 = folder.version == 2;
  std::uint64_t limit =
      read_number(folder.path / (v2 ? "memory.max" : "memory.limit_in_bytes")).value_or(kUnlimited);
  // Above it the kernel slows the group down.
  if (v2) limit = std::min(limit, read_number(folder.path / "memory.high").value_or(kUnlimited));
  if (limit >= kUnlimited / 4) return kUnlimited;  // version 1 writes a large number for none
  const std::uint64_t used =
      read_number(folder.path / (v2 ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
  const std::uint64_t cache = std::min(used, clean_cache(folder));
  const std::uint64_t held = used - cache;
  return limit > held ? limit - held : 0;
}

// "4", or "4(x2),3": 4 tasks on each of the first two nodes, 3 on the third.
std::optional<std::uint64_t> tasks_on_node(std::string_view text, std::uint64_t node) {
  std::optional<std::uint64_t> tasks;
  while (!text.empty()) {
    tasks = take_number<std::uint64_t>(text);
    if (!tasks || *tasks == 0 || *tasks > kMostRanks) return std::nullopt;
    std::uint64_t nodes = 1;
    if (text.starts_with("(x")) {
      text.remove_prefix(2);
      nodes = take_number<std::uint64_t>(text).value_or(0);
      if (nodes == 0 || !text.starts_with(')')) return std::nullopt;
      text.remove_prefix(1);
    }
    if (!text.empty() && !text.starts_with(',')) return std::nullopt;
    if (node < nodes) break;
    node -= nodes;
    text.remove_prefix(std::min<std::size_t>(1, text.size()));
  }
  return tasks;  // of the last nodes, where the list is shorter
}

}  // namespace

std::uint64_t cgroup_available_bytes(const fs::path& root) {
  std::uint64_t bytes = kUnlimited;
  for (const CgroupFolder& folder : cgroup_folders("memory", root)) bytes = std::min(bytes, room_in(folder));
  return bytes;
}

std::uint64_t available_memory_bytes(const fs::path& root) {
  return std::min(mem_available(root), cgroup_available_bytes(root));
}

std::uint64_t local_rank_count(const char* (*environment)(const char*)) {
  const auto variable = [&](const char* name) {
    const char* const text = environment != nullptr ? environment(name) : std::getenv(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    const std::string_view text = variable(name);
    if (text.find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (const auto ranks = tasks_on_node(text, 0)) return *ranks;
  }
  std::string_view id = variable("SLURM_NODEID");
  const std::uint64_t node = take_number<std::uint64_t>(id).value_or(0);
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
    if (const auto ranks = tasks_on_node(variable(name), node)) return *ranks;
  return 1;
}

std::uint64_t default_memory_budget_bytes() { return available_memory_bytes() / 2 / local_rank_count(); }

}  // namespace shard
