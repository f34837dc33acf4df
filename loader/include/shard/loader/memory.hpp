// The memory that a loader will take, computed before anything is allocated.
#pragma once

#include <cstdint>

#include "shard/error.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

// docs/loader.md, "Memory", has the formulas.
struct LoaderMemory {
  // Batches on the device, what the transform needs beside them, and resident samples.
  std::uint64_t device_bytes = 0;
  // Page-locked host memory: columns and staging. Transport mapped has staging memory only until all shards
  // are registered, which is not counted here: at most what staged takes, within LoaderOptions::pinned_bytes.
  std::uint64_t pinned_bytes = 0;
  // Registered shards once the order has come to all of them; where they do not fit into the budget of a
  // windowed or sequential order, the budget, which is then an upper bound.
  std::uint64_t registered_bytes = 0;
  // How samples reach the device: mapped, staged or direct; what `automatic` and `resident` will choose.
  TransportKind transport = TransportKind::automatic;
  bool operator==(const LoaderMemory&) const = default;
};

// What a Loader with these arguments will allocate; LoaderStats reports the same once it runs. Allocates and
// registers nothing, so a platform that refuses registrations or pinned memory is not noticed here. It opens
// shards: the first one for transport direct, and all of codec packed for transport mapped. Errors: those of
// the Loader's constructor that do not come from the device.
LoaderMemory plan_memory(const Dataset& dataset, Device& device, const LoaderOptions& options);

// The same for a device that is only described. `free_device_bytes`: what is free on it before the loader is
// made; it counts for transport resident where LoaderOptions::resident_bytes is 0.
LoaderMemory plan_memory(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options,
                         std::uint64_t free_device_bytes);

}  // namespace shard
