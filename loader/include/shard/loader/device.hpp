// Device: where batches are delivered to. A small interface with two implementations: the host (always) and
// CUDA (shard::loader_cuda).
//
// Work is queued on streams. It runs in order within a stream, and concurrently between streams. An Event
// marks a point in a stream and exists only as the result of recording. Nothing here names CUDA; a native
// stream or event is a void*.
//
// Thread safety: several threads may use a Device and Events. A Stream belongs to one thread at a time,
// except for record() and wait(), which any thread may call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "shard/error.hpp"
#include "shard/loader/stream.hpp"
#include "shard/loader/targets.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

namespace jpeg {
struct FrameFile;
}
struct JpegIndexWork;
struct JpegWork;  // loader/src/transform/jpeg_work.hpp

enum class DeviceKind : std::uint8_t { host, cuda };

// What the platform can do.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::host;
  int ordinal = 0;
  // "host", "NVIDIA H200"
  std::string name;
  // Total device memory; 0 for the host.
  std::uint64_t memory_bytes = 0;
  // Read-only file mappings can be registered in place.
  bool registers_read_only = false;
  // The best size of one registration in bytes, because other threads wait for the device meanwhile. A copy
  // must not read from two registrations. 0: any size.
  std::uint64_t registration_piece_bytes = 0;
  // One call of the driver copies many ranges.
  bool batched_copy = false;
  // If not: how a batch's samples are copied instead, and why, for people.
  std::string copy_note;
  // transform() may read samples in host memory in place (the host device).
  bool reads_host_memory = false;
  // Stream::decode_jpeg() decodes JPEG files as they are (JpegDecoder).
  bool decodes_jpeg = false;
};

// A point in a stream's work. Copies share the point. A default-constructed event is done.
class Event {
 public:
  class Impl {
   public:
    virtual ~Impl() = default;
    // True if the work before the event has ended. Throws Error(io) if work failed: on the host the work
    // since the previous event of the stream; on a GPU, where a failure is permanent, any work.
    virtual bool done() = 0;
    // Blocks the calling thread until done(); throws likewise.
    virtual void wait() = 0;
    // False if `timeout` passed before. A device without timed waits waits to the end.
    virtual bool wait_for(std::chrono::milliseconds) {
      wait();
      return true;
    }
    // cudaEvent_t, or null.
    virtual void* native() noexcept = 0;
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

// Memory of a device, freed when destroyed. Must not outlive its device.
class Block {
 public:
  virtual ~Block() = default;
  virtual std::byte* data() const noexcept = 0;
  virtual std::uint64_t size_bytes() const noexcept = 0;
};

// A range of host memory that the device reads in place (page-locked). It must be destroyed before the range
// is unmapped.
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
  // Waits for the work in the stream.
  virtual ~Stream() = default;
  // Queues host-to-device copies. For full speed the sources must be pinned or registered. They must stay
  // valid until the work is done. Source and target ranges must not overlap. The array is read before the
  // call returns.
  virtual void copy(std::span<const CopyItem> items) = 0;
  // The same, if all sources are pinned memory (Device::allocate_pinned) or registered ranges. A kernel of
  // the device may then read them, if that costs the host less than the copy engine.
  virtual void copy_pinned(std::span<const CopyItem> items) { copy(items); }
  // Queues a host-to-device copy of a small range of pinned memory (Device::allocate_pinned). If the device
  // can, it does not use the copy engine, where the copy would wait for whole batches. Source and target are
  // 16-byte aligned.
  virtual void upload(const CopyItem& item) = 0;
  // Queues device-to-device copies (resident samples).
  virtual void gather(std::span<const CopyItem> items) = 0;
  // Queues the transform of a batch (transform.hpp). The arrays in `work` are read before the call returns.
  virtual void transform(const TransformWork& work) = 0;
  // Queues the pixels of targets (targets.hpp). The arrays in `work` are read before the call returns.
  // Errors: unsupported on a device that has no targets; invalid_argument.
  virtual void follow(const TargetWork& work);
  // Queues the decoding of JPEG files. The array in `work` is read before the call returns. Errors:
  // unsupported (DeviceInfo::decodes_jpeg is false), resource (a workspace that is too small).
  virtual void decode_jpeg(const JpegWork& work);
  // Queues the making of indices, in frames whose own are undefined bytes. A file that libjpeg-turbo would
  // not read, or with a warning, gets one with which it is a broken frame (TransformWork::broken). With
  // little workspace, fewer at a time. The array in `work` is read before the call returns. Errors:
  // unsupported (the device makes none), resource (the workspace is too small for one of them).
  virtual void index_jpeg(const JpegIndexWork& work);
  // What a file takes of the workspace.
  virtual std::uint64_t jpeg_workspace_bytes(const jpeg::FrameFile& file) const;
  // What transform() and follow() queue from now on is of no use once `unwanted` is true: a device may then
  // leave out what it has not begun. The target is undefined, and events are done as if it had been made.
  // Null: all of it is made. By default this changes nothing.
  virtual void may_leave_out(std::shared_ptr<const std::atomic<bool>> unwanted);
  // Queues device-to-host copies.
  virtual void copy_to_host(std::span<const CopyItem> items) = 0;
  virtual Event record() = 0;
  // Later work in this stream starts after the event.
  virtual void wait(const Event& event) = 0;
  // Blocks until all work is done. Throws Error(io) if any of it failed.
  virtual void synchronize() = 0;
  // cudaStream_t, or null.
  virtual void* native() noexcept = 0;

 private:
  friend class StreamRef;
  std::shared_ptr<const void> life_ = std::make_shared<char>();
};

inline StreamRef::StreamRef(Stream& stream) noexcept : stream_(&stream), life_(stream.life_) {}

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const noexcept = 0;
  // Errors: resource (how much was requested, how much is available, which option to lower).
  virtual std::unique_ptr<Block> allocate_pinned(std::uint64_t size_bytes) = 0;
  virtual std::unique_ptr<Block> allocate_device(std::uint64_t size_bytes) = 0;
  // Free device memory; on the host, available memory.
  virtual std::uint64_t free_memory_bytes() = 0;
  // `range` must start at a page boundary and belong to a read-only shared mapping. Errors: unsupported (the
  // platform or the kind of memory refuses; the device stays usable), resource (limit on locked memory),
  // cancelled (`stop` was requested before or while it waited).
  virtual std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                           const std::stop_token& stop = {}) = 0;
  // Whether copies can read all of this host memory in place, because it is page-locked. False: unknown.
  virtual bool is_pinned(std::span<const std::byte>) { return false; }
  virtual std::unique_ptr<Stream> create_stream() = 0;
  // Make a consumer's stream wait for an event, and record an event in it. From any thread. Errors:
  // invalid_argument (a stream of another kind of device, or one that captures a CUDA graph), io. The default
  // implementations suffice for a device that has only its own streams.
  virtual void wait(StreamRef stream, const Event& event);
  virtual Event record(StreamRef stream);
  // Each thread that the library starts calls this once, before it uses the device. CUDA: selects the device
  // for the thread, and allows its calls while another thread captures a CUDA graph.
  virtual void enter_thread() {}
  // Throws Error(io), naming the cause, if the device has failed (lost, sticky error).
  virtual void check() = 0;
  // Named, nested ranges of the calling thread for a profiler. CUDA: NVTX; other devices: nothing.
  virtual void begin_range(const char*) noexcept {}
  virtual void end_range() noexcept {}
};

// The host as a device: "device" memory is host memory. The work of each stream runs on its own thread, so
// that reusing a batch too early is a data race that ThreadSanitizer can detect. `threads`, 1 to 64, is the
// number of workers that share each batch. They run while the device has streams, that is, while a loader
// uses it.
std::shared_ptr<Device> make_host_device(unsigned threads);

}  // namespace shard
