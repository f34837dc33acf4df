// Waits until no other thread of this process runs: before fork() in a test whose child uses memory. An
// allocator of a sanitizer does not give back, in the child, a lock that another thread had.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

namespace shard {

// Whether all other threads sleep now, by /proc/self/task.
inline bool other_threads_sleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (std::atol(task.path().filename().c_str()) == ::gettid()) continue;
    std::string line;
    std::getline(std::ifstream(task.path() / "stat") >> std::ws, line);
    const std::size_t end = line.rfind(") ");  // the name before it may hold anything
    if (end != std::string::npos && line.compare(end + 2, 1, "S") != 0) return false;
  }
  return true;
}

// Five times in a row; gives up after 10 s.
inline bool wait_for_idle_threads() {
  int idle = 0;
  for (int turn = 0; turn < 1000 && idle < 5; ++turn) {
    idle = other_threads_sleep() ? idle + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return idle == 5;
}

}  // namespace shard
