// A batch while Python objects hold it: given back when the last of them dies.
//
// On a GPU its memory is used again after the work in the streams that the batch knows (Batch::wait_on): the
// one that was ordered after it when it was handed out, those of DLPack's consumers, and, added here, the one
// that is current in the thread in which the last holder dies. Other streams are the user's to order before
// one of these.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "common.hpp"
#include "shard/loader/cuda_device.hpp"
#include "shard/loader/loader.hpp"

namespace shard::python {

// A stream's number as frameworks and DLPack give it; 0 and 1 are both CUDA's legacy default stream.
inline StreamRef stream_of(std::uint64_t number) noexcept {
  return cuda_stream(reinterpret_cast<CUstream_st*>(static_cast<std::uintptr_t>(number)));
}

// Which stream of a framework is current. Thread safe.
class CurrentStream {
 public:
  // `ask`: a callable without arguments that returns the calling thread's current stream as a number, or
  // None.
  explicit CurrentStream(const nb::object& ask);
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;
  ~CurrentStream();
  // Takes the GIL. Nothing without a callable, when it fails, or when the interpreter is going down.
  std::optional<StreamRef> get() noexcept;

 private:
  PyObject* ask_ = nullptr;  // owned
};

class Lease {
 public:
  // `current`: null on the host device.
  Lease(Batch batch, std::shared_ptr<CurrentStream> current)
      : batch_(std::move(batch)), current_(std::move(current)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
  Batch& batch() noexcept { return batch_; }

 private:
  const int process_ = ::getpid();  // a forked child has no stream to ask
  Batch batch_;
  std::shared_ptr<CurrentStream> current_;
};

}  // namespace shard::python
