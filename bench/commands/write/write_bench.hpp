// How fast shards can be written to a disk by each of the ways that the system offers, and what the disk and
// the memory would allow.
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
  // Limits, measured in turn with the cases. disk: overwriting a file that is there, O_DIRECT, 8 threads,
  // fsync counted; empty without O_DIRECT. memory: one thread that copies the same blocks into memory.
  std::vector<double> disk_bytes_per_second;
  std::vector<double> memory_bytes_per_second;
};

// The free space that is asked for: the files of one run, the file of the disk's limit, and something for the
// filesystem itself.
std::uint64_t write_space_bytes(const WriteSizes& sizes);

// Writes below a folder of its own inside options.folder, which is gone afterwards however it ends. Cases
// take turns. `done`: after each case of each repeat. Errors: invalid_argument (the option, its value and
// bounds), not_found, resource (free space: needed and there), corrupt, io, cancelled.
WriteResult bench_write(const WriteOptions& options, const std::atomic<bool>& cancel,
                        const std::function<void(const WriteResult&)>& done);

}  // namespace shard::bench
