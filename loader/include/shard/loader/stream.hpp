// StreamRef: the name of a stream, to order a batch with the work in it.
//
//   shard::Stream& stream       of a Device                  batch.wait_on(*stream);
//   cudaStream_t stream         CUDA's own, also stream 0    batch.wait_on(shard::cuda_stream(stream));
//
// A StreamRef cannot be made from 0 or nullptr, because null means CUDA's default stream to some and "the
// host" to others. cuda_stream() is in cuda_device.hpp. To wait on the host, use Batch::wait(). A StreamRef
// borrows the stream. A stream of CUDA must live until the batches that were given to it are released. A
// Stream may end before, because its destructor waits for the work in it.
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

  // One of the two is set: a stream of a Device, or the handle of a CUDA stream.
  Stream* stream() const noexcept { return stream_; }
  CUstream_st* cuda() const noexcept { return cuda_; }
  // True for a Stream that was destroyed: its work is done.
  bool ended() const noexcept { return stream_ != nullptr && life_.expired(); }
  // CUDA's default stream, which nobody can destroy. Any other may be destroyed once its batches are
  // released, and its handle be that of a new one, which is ordered after nothing.
  bool is_default() const noexcept { return is_default_; }
  bool operator==(const StreamRef& other) const noexcept {
    return stream_ == other.stream_ && cuda_ == other.cuda_ && ended() == other.ended();
  }

 private:
  friend StreamRef cuda_stream(CUstream_st* stream) noexcept;
  StreamRef() = default;
  Stream* stream_ = nullptr;
  std::weak_ptr<const void> life_;  // of stream_
  CUstream_st* cuda_ = nullptr;
  bool is_default_ = false;
};

}  // namespace shard
