// Pinned memory through which threads read files for a device that has memory of its own. Each thread has a
// few chunks for itself, so that what it writes is still in the processor's caches when the device reads it.
//
//   take() ──▶ the thread reads files into it ──▶ copied set: the device reads it ──▶ take() again
//
// A thread reads a file of 100 kB in 20 us so, and in 40 us into memory that a whole batch is staged in (H100
// machine, 15 threads, page cache).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "shard/loader/device.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

struct FileChunk {
  std::unique_ptr<Block> memory;
  Event copied;  // the device has read the chunk; set by the code that queued the copies out of it
};

// Thread safe; a chunk is its thread's.
class FileChunks {
 public:
  // For so many threads. Allocates all chunks. Errors: resource.
  FileChunks(Device& device, const ChunkMemory& memory);
  FileChunks(const FileChunks&) = delete;
  FileChunks& operator=(const FileChunks&) = delete;

  // The calling thread's next chunk. Waits for the copies out of it. Errors: io (they failed).
  FileChunk& take();

 private:
  struct Own {
    std::thread::id thread;
    std::vector<FileChunk> chunks;
    std::size_t next = 0;
  };
  Own& own();

  Device& device_;
  std::mutex mutex_;  // guards taken_ and Own::thread
  std::size_t taken_ = 0;
  std::vector<Own> all_;
};

}  // namespace shard
