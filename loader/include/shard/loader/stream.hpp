// StreamRef: the name of a stream, to order a batch with the work in it.
//
//   shard::Stream& stream       of a Device                  batch.wait_on(*stream);
//   cudaStream_t stream         CUDA's own, also stream 0    batch.wait_on(shard::cuda_stream(stream));
//
// There is no StreamRef of 0 or nullptr: null is CUDA's default stream for some and "the host" for others.
// cuda_stream() is in cuda_device.hpp; the host waits by Batch::wait(). A StreamRef borrows the stream. A
// stream of CUDA must live until the batches that it was handed to have been given back; a Stream may end
// before, for its destructor waits for the work in it.
#pragma once

#include <cstddef>
#include <memory>

// What cudaStream_t points to.
struct CUstream_st;

namespace shard {

class Stream;

class StreamRef {
 public:
  StreamRef(Stream& stream) noexcept;
  StreamRef(std::nullptr_t) = delete;
  StreamRef(int) = delete;

  // One of the two is set: a stream of a Device, or the handle of a stream that CUDA made.
  Stream* stream() const noexcept { return stream_; }
  CUstream_st* cuda() const noexcept { return cuda_; }
  // A Stream that was destroyed: the work in it is done.
  bool ended() const noexcept { return stream_ != nullptr && life_.expired(); }
  bool operator==(const StreamRef& other) const noexcept {
    return stream_ == other.stream_ && cuda_ == other.cuda_ && ended() == other.ended();
  }

 private:
  friend StreamRef cuda_stream(CUstream_st* stream) noexcept;
  StreamRef() = default;
  Stream* stream_ = nullptr;
  std::weak_ptr<const void> life_;  // of stream_
  CUstream_st* cuda_ = nullptr;
};

}  // namespace shard
