// What a process holds, asked of /proc: threads, descriptors, mappings, resident memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <thread>

namespace shard::testing {

struct ProcessUse {
  std::int64_t threads = 0;
  std::int64_t descriptors = 0;
  std::int64_t mappings = 0;         // lines of /proc/self/maps
  std::int64_t folder_mappings = 0;  // of them, of files in the folder asked for
  std::int64_t resident_bytes = 0;
};
inline std::ostream& operator<<(std::ostream& out, const ProcessUse& use) {
  return out << use.threads << " threads, " << use.descriptors << " descriptors, " << use.mappings
             << " mappings (" << use.folder_mappings << " of the folder), " << use.resident_bytes / 1024
             << " KiB resident";
}

inline std::int64_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

inline ProcessUse process_use(const std::filesystem::path& folder) {
  ProcessUse use;
  use.threads = entries("/proc/self/task");
  use.descriptors = entries("/proc/self/fd");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line); ++use.mappings)
    if (line.find(folder.native()) != std::string::npos) ++use.folder_mappings;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) use.resident_bytes = std::stoll(line.substr(6)) * 1024;
  return use;
}

// The same once `threads` are left: the kernel takes a joined thread off its list a little later.
inline ProcessUse process_use_at_rest(const std::filesystem::path& folder, std::int64_t threads) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  ProcessUse use = process_use(folder);
  while (use.threads > threads && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
    use = process_use(folder);
  }
  return use;
}

}  // namespace shard::testing
