// How fast shards can be written to a disk in each way that the system has, and the limits of disk and
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "commands/write/write_run.hpp"

namespace shard::bench {

struct WriteOptions {
  std::filesystem::path folder;
  WriteSizes sizes;
  unsigned repeat = 3;
};

struct WriteCase {
  WriteMethod method = WriteMethod::buffered;
  bool preallocated = false;  // fallocate before the first write
  std::string problem;        // why the filesystem cannot do it; empty: the samples hold
  std::vector<WriteSample> samples;
  std::uint64_t checked_blocks = 0;  // of the first run, read back and compared
};

struct WriteResult {
  std::vector<WriteCase> cases;
  // Limits, measured alternately with the cases. disk: 8 threads overwrite an existing file with O_DIRECT,
  // including fsync; empty without O_DIRECT. memory: one thread copies the same blocks into memory.
  std::vector<double> disk_bytes_per_second;
  std::vector<double> memory_bytes_per_second;
};

// The free space that is needed: the files of one run, the file for the limit of the disk, and some for the
// filesystem.
std::uint64_t write_space_bytes(const WriteSizes& sizes);

// Writes into a new folder in options.folder, which is always removed afterwards. Cases alternate. `done` is
// called after each case of each repeat. Errors: invalid_argument (the option, its value and bounds),
// not_found, resource (the needed and the free space), corrupt, io, cancelled.
WriteResult bench_write(const WriteOptions& options, const std::atomic<bool>& cancel,
                        const std::function<void(const WriteResult&)>& done);

}  // namespace shard::bench
