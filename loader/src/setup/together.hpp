// How many batches are made as one (LoaderOptions::together).
#pragma once

#include <cstdint>

#include "shard/loader/loader.hpp"

namespace shard {

// Whether options, as they were asked for, leave it open how many batches are ahead in how much memory.
bool leaves_memory_open(const LoaderOptions& asked) noexcept;
// Of options that are checked, but for `together`, which is as it was asked for.
// `free`: leaves_memory_open().
std::uint32_t choose_together(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options,
                              bool free);

}  // namespace shard
