// Direct reads: many reads of files at the same time, started and collected by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "shard/error.hpp"

namespace shard {

// One read. The caller owns it, and must not move it or its target until next_done() has returned it.
struct ReadRequest {
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::byte* target = nullptr;
  std::uint32_t size_bytes = 0;
  // When it is done: the bytes that were read, 0 at the end of the file, or -errno.
  std::int64_t result = 0;
};

// Not thread safe. A queue must be empty (every started request collected, or drained) when it is destroyed.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  virtual std::string_view name() const noexcept = 0;
  // Adds the request; flush() submits it to the kernel. Errors: io.
  virtual void start(ReadRequest& request) = 0;
  virtual void flush() = 0;
  // Waits until a request is done, in any order. At least one must be in progress. Errors: io.
  virtual ReadRequest& next_done() = 0;
  // For a queue that has failed: drops the requests that were not submitted, and waits for the others, so
  // that no request or target is touched any longer. The queue is empty then, and must not be used again.
  virtual void drain() noexcept = 0;
};

// io_uring (Jens Axboe, "Efficient IO with io_uring", 2019), through liburing. `entries`: how many requests
// may be in progress. Throws unsupported, naming the cause, if the kernel or the rules of a container refuse
// it.
std::unique_ptr<ReadQueue> make_uring_queue(unsigned entries);
// `threads` threads that call pread(); works everywhere. Errors: resource (a thread cannot be started).
std::unique_ptr<ReadQueue> make_thread_queue(unsigned threads);

}  // namespace shard
