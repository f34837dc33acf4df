// MemoryOptions::batch_bytes of samples of any size: how large the room of a batch is.
#pragma once

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/loader_options.hpp"

namespace shard {

// Sets what was not given, and checks what was. Reads the sizes of samples in some shards. Errors: resource
// (the largest sample does not fit); those of Dataset::shard().
void set_batch_bytes(const Dataset& dataset, const DeviceInfo& device, LoaderOptions& options);

}  // namespace shard
