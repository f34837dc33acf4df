// What can carry the bytes at best: what the loader's rates are held against, measured in the same process.
#pragma once

#include <memory>
#include <span>

#include "shard/loader/loader.hpp"

namespace shard::bench {

// Bytes per second of pinned memory to the devices, all at once, in blocks of 256 MiB, 4 GiB to each: the
// links and nothing else.
double link_limit(std::span<const std::shared_ptr<Device>> devices);

// Bytes per second of a bare gather: samples in the order of the loader, from the mapping into a ring of as
// many batches, by the device's own threads.
double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options);

// Bytes per second of the disk under the shards: 1 MiB reads past the page cache (O_DIRECT) in sequence, by
// 8, 32 or 64 threads, whatever gives most; at most 4 GiB each. 0: the filesystem has no O_DIRECT.
double disk_limit(const Dataset& dataset);

}  // namespace shard::bench
