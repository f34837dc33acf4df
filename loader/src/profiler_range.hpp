// Time as the loader counts it and as a profiler shows it.
#pragma once

#include <chrono>

#include "shard/loader/device.hpp"

namespace shard {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What the loader does, on a profiler's time line.
class ProfilerRange {
 public:
  ProfilerRange(Device& device, const char* name) : device_(device) { device_.begin_range(name); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange() { device_.end_range(); }

 private:
  Device& device_;
};

}  // namespace shard
