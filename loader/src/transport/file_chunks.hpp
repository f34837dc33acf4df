// Pinned memory through which threads read files for a device that has memory of its own. Each thread has a
// few chunks for itself, so that what it writes is still in the processor's caches when the device reads it.
//
//   take() ──▶ the thread reads files into it ──▶ copy() ──▶ the device reads it ──▶ take() again
//
// A thread reads a file of 100 kB in 20 us so, and in 40 us into memory that a whole batch is staged in (H100
// machine, 15 threads, page cache). No thread waits for another one's call of the driver: whoever finds the
// stream free queues the copies of all.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "shard/loader/device.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

struct FileChunk {
  std::unique_ptr<Block> memory;
  std::atomic<bool> waits{false};  // its copies are not queued yet
  Event copied;                    // the device has read the chunk; valid if it does not wait
};

// Thread safe; a chunk is its thread's.
class FileChunks {
 public:
  // Copies go to `stream`, which must outlive the threads. Allocates all chunks. Errors: resource.
  FileChunks(Device& device, Stream& stream, const ChunkMemory& memory);
  FileChunks(const FileChunks&) = delete;
  FileChunks& operator=(const FileChunks&) = delete;

  // The calling thread's next chunk. Waits for the copies out of it. Errors: io (they failed).
  FileChunk& take();
  // Queues these copies out of the chunk, or leaves that to the thread that uses the stream, or to flush().
  void copy(FileChunk& chunk, std::vector<CopyItem> copies);
  // Queues copies out of registered memory, before it returns. Any of the threads.
  void copy_registered(std::span<const CopyItem> copies);
  // All copies are queued, and the stream is the caller's alone while the lock lives. Errors: those of
  // queuing copies, from then on.
  [[nodiscard]] std::unique_lock<std::mutex> flush();

 private:
  struct Own {
    std::thread::id thread;
    std::vector<std::unique_ptr<FileChunk>> chunks;
    std::size_t next = 0;
  };
  struct Waiting {
    FileChunk* chunk = nullptr;
    std::vector<CopyItem> copies;
  };
  Own& own();
  void queue_waiting() noexcept;  // with stream_mutex_ held

  Device& device_;
  Stream& stream_;
  std::mutex own_mutex_;  // guards the next two
  std::size_t taken_ = 0;
  std::vector<Own> all_;
  std::mutex waiting_mutex_;  // guards waiting_
  std::vector<Waiting> waiting_;
  std::mutex stream_mutex_;  // guards the stream, and the next two
  std::vector<Waiting> queued_;
  std::exception_ptr failure_;
};

}  // namespace shard
