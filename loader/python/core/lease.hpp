// A batch while Python objects hold it: given back when the last of them dies.
//
// On a GPU its memory may be used again only after the work that reads it. Two streams are known, as with
// PyTorch's own allocator and one more: the stream that was ordered after the batch when it was handed out,
// and the stream that is current in the thread in which the last holder dies. The slot is reused after what
// is in both at that moment. Other streams are the user's to order before one of these.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common.hpp"
#include "shard/loader/loader.hpp"

namespace shard::python {

// Streams of a framework on one CUDA device. Thread safe.
class Streams {
 public:
  // `current`: a callable without arguments that returns the calling thread's current stream as a number, or
  // None.
  Streams(std::shared_ptr<Device> device, const nb::object& current);
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams();
  // Takes the GIL. Nothing without a callable, when it fails, or when the interpreter is going down.
  std::optional<void*> current() noexcept;
  // Gives the batch back after the work that is in `streams` now.
  void release_after(Batch& batch, const std::vector<void*>& streams);

 private:
  std::shared_ptr<Device> device_;
  PyObject* current_ = nullptr;  // owned
  std::mutex mutex_;
  std::unique_ptr<Stream> joiner_;  // waits for several streams, so that none of them waits for another
};

class Lease {
 public:
  Lease(Batch batch, std::shared_ptr<Streams> streams)
      : batch_(std::move(batch)), streams_(std::move(streams)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
  Batch& batch() noexcept { return batch_; }
  // Orders later work of `stream` after the batch's bytes (null: the host waits), and remembers it. Call
  // without the GIL.
  void wait_on(void* stream);

 private:
  const int process_ = ::getpid();
  Batch batch_;
  std::shared_ptr<Streams> streams_;  // null: the host device
  std::mutex mutex_;
  std::vector<void*> used_;
};

// A stream's number as frameworks and DLPack give it; 0 and 1 are both CUDA's legacy default stream, whose
// handle is 1 (0 would mean that the host waits).
inline void* stream_handle(std::uint64_t number) noexcept {
  return reinterpret_cast<void*>(number == 0 ? std::uintptr_t{1} : static_cast<std::uintptr_t>(number));
}

}  // namespace shard::python
