// Direct reads: many reads of files under way at once, started and collected by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shard {

// One read. Owned by the caller; stays where it is, and its target with it, until next_done() returned it.
struct ReadRequest {
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::byte* target = nullptr;
  std::uint32_t size_bytes = 0;
  std::int64_t result = 0;  // when done: bytes read, 0 at the end of the file, or -errno
};

// Not thread safe. A queue must be empty (every started request collected, or drained) when it is destroyed.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  virtual std::string_view name() const noexcept = 0;
  // Takes the request; flush() sees to it that the kernel has it. Errors: io.
  virtual void start(ReadRequest& request) = 0;
  virtual void flush() = 0;
  // Waits for a request that is done, in any order. At least one must be under way. Errors: io.
  virtual ReadRequest& next_done() = 0;
  // For a queue that has failed: forgets the requests that were not begun, and waits for the others, so that
  // nobody touches a request or its memory any longer. The queue is empty then, and not to be used again.
  virtual void drain() noexcept = 0;
};

// io_uring (Jens Axboe, "Efficient IO with io_uring", 2019), through liburing. `entries`: how many requests
// may be under way. Throws Error(unsupported) naming the cause where the kernel or a container's rules
// refuse it.
std::unique_ptr<ReadQueue> make_uring_queue(unsigned entries);
// So many threads in pread(); works everywhere. Errors: resource (a thread could not be started).
std::unique_ptr<ReadQueue> make_thread_queue(unsigned threads);

}  // namespace shard
