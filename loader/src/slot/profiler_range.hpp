// Names what the loader does on a profiler's time line.
#pragma once

#include "shard/loader/device.hpp"

namespace shard {

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
