// Device: where batches end up. A small interface, implemented by the host (always) and by CUDA
// (shard::loader_cuda).
//
// Work is queued on streams and runs in order within a stream, concurrently between streams. An Event marks a
// point in a stream; it exists only as the result of recording. Nothing here names CUDA; a native stream or
// event passes as void*.
//
// Thread safety: a Device may be used from several threads; a Stream from one thread at a time, but for
// record() and wait(), which any thread may call; Events from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "shard/loader/stream.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

enum class DeviceKind : std::uint8_t { host, cuda };

// What the platform allows, found by asking it.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::host;
  int ordinal = 0;
  std::string name;                  // "host", "NVIDIA H200"
  std::uint64_t memory_bytes = 0;    // device memory in all; 0 for the host
  bool registers_read_only = false;  // read-only file mappings can be registered in place
  // How much is best registered by one call: other threads wait for the device meanwhile. No copy may read
  // from two registrations. 0: any size.
  std::uint64_t registration_piece_bytes = 0;
  bool batched_copy = false;  // one call copies many ranges
  bool reads_host_memory =
      false;  // transform() may read samples where they lie in host memory (the host device)
};

// A point in a stream's work. Copies share the point. A default-made event is done.
class Event {
 public:
  class Impl {
   public:
    virtual ~Impl() = default;
    // The work before it has ended. Throws Error(io) when that work failed: on the host the work since the
    // event before it in its stream, on a GPU, where a failure stays, any.
    virtual bool done() = 0;
    virtual void wait() = 0;  // blocks the calling thread until then; throws likewise
    // False: `timeout` passed before. Where the device cannot say, it waits to the end.
    virtual bool wait_for(std::chrono::milliseconds) {
      wait();
      return true;
    }
    virtual void* native() noexcept = 0;  // cudaEvent_t, or null
  };
  Event() = default;
  explicit Event(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  bool done() const { return !impl_ || impl_->done(); }
  void wait() const {
    if (impl_) impl_->wait();
  }
  bool wait_for(std::chrono::milliseconds timeout) const { return !impl_ || impl_->wait_for(timeout); }
  Impl* impl() const noexcept { return impl_.get(); }

 private:
  std::shared_ptr<Impl> impl_;
};

// Memory owned by a device; given back when destroyed. Must not outlive its device.
class Block {
 public:
  virtual ~Block() = default;
  virtual std::byte* data() const noexcept = 0;
  virtual std::uint64_t size_bytes() const noexcept = 0;
};

// A range of host memory that the device reads in place (page-locked); released when destroyed, before the
// range is unmapped.
class Registration {
 public:
  virtual ~Registration() = default;
  virtual std::span<const std::byte> range() const noexcept = 0;
};

struct CopyItem {
  std::byte* target = nullptr;
  const std::byte* source = nullptr;
  std::uint64_t size_bytes = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;  // waits for the work in it
  // Queue host-to-device copies; sources must be pinned or registered for full speed, and stay valid until
  // the work is done. Source and target ranges do not overlap. The array itself is read before the call
  // returns.
  virtual void copy(std::span<const CopyItem> items) = 0;
  // The same; all sources lie in pinned memory (Device::allocate_pinned) or in registered ranges, so that a
  // kernel of the device may read them: where that costs the host less than the copy engine.
  virtual void copy_pinned(std::span<const CopyItem> items) { copy(items); }
  // Queue a host-to-device copy of a small range of pinned memory (Device::allocate_pinned) outside of the
  // copy engine where the device can (there it would queue behind whole batches); both 16-byte aligned.
  virtual void upload(const CopyItem& item) = 0;
  // Queue device-to-device copies (resident samples).
  virtual void gather(std::span<const CopyItem> items) = 0;
  // Queue one transform of a batch (transform.hpp). Arrays in `work` are read before the call returns.
  virtual void transform(const TransformWork& work) = 0;
  virtual void copy_to_host(std::span<const CopyItem> items) = 0;
  virtual Event record() = 0;
  virtual void wait(const Event& event) = 0;  // later work in this stream starts after the event
  virtual void synchronize() = 0;       // blocks until all work is done; throws Error(io) when any failed
  virtual void* native() noexcept = 0;  // cudaStream_t, or null

 private:
  friend class StreamRef;
  std::shared_ptr<const void> life_ = std::make_shared<char>();
};

inline StreamRef::StreamRef(Stream& stream) noexcept : stream_(&stream), life_(stream.life_) {}

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const noexcept = 0;
  // Errors: resource (how much was asked for, what there is, which option to lower).
  virtual std::unique_ptr<Block> allocate_pinned(std::uint64_t size_bytes) = 0;
  virtual std::unique_ptr<Block> allocate_device(std::uint64_t size_bytes) = 0;
  virtual std::uint64_t free_memory_bytes() = 0;  // device memory; host: available memory
  // `range` is page-aligned at its begin and belongs to a read-only shared mapping. Errors: unsupported (the
  // platform or the memory kind refuses; the device stays usable), resource (limit on locked memory),
  // cancelled (`stop` was requested before, or while it waited).
  virtual std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                           const std::stop_token& stop = {}) = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  // Makes a consumer's stream wait for an event, and records one in it. From any thread. Errors:
  // invalid_argument (a stream of another kind of device, or one that captures a CUDA graph), io. A device
  // whose streams are all its own does with these.
  virtual void wait(StreamRef stream, const Event& event);
  virtual Event record(StreamRef stream);
  // Each thread that the library starts calls this once, before it uses the device. CUDA: selects the device
  // for the thread, and lets its calls go on while another thread captures a CUDA graph.
  virtual void enter_thread() {}
  // Throws Error(io) naming the cause when the device has failed (lost, sticky error).
  virtual void check() = 0;
  // A named range of the calling thread for a profiler, nested like brackets. CUDA: NVTX; elsewhere nothing.
  virtual void begin_range(const char*) noexcept {}
  virtual void end_range() noexcept {}
};

// The host as a device: "device" memory is host memory; the work of each stream runs on threads of its own,
// so that reuse of a batch too early is a data race that ThreadSanitizer sees. threads: 1 to 64 workers that
// share each batch; they run while the device has streams, so while a loader uses it.
std::shared_ptr<Device> make_host_device(unsigned threads);

}  // namespace shard
