#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/system/streaming_copy.hpp"
#include "base/system/thread_pool.hpp"
#include "base/text/quote.hpp"
#include "jpeg/frame.hpp"
#include "shard/error.hpp"
#include "shard/jpeg_frame.hpp"
#include "shard/loader/device.hpp"
#include "transform/augment/mix.hpp"
#include "transform/host_transform.hpp"
#include "transform/jpeg_work.hpp"
#include "transform/targets/host_targets.hpp"

namespace shard {

namespace {

constexpr std::size_t kAlign = 4096;
constexpr std::size_t kCopyGrain = 4;  // samples that a thread takes at once

class HostBlock final : public Block {
 public:
  explicit HostBlock(std::uint64_t size) : size_(size) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kAlign, (size + kAlign - 1) / kAlign * kAlign));
    if (data_ == nullptr)
      throw Error(ErrorCode::resource,
                  fmt::format("no host memory for a block of {} bytes; lower batch_size, prefetch or "
                              "together",
                              size));
  }
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  ~HostBlock() override { std::free(data_); }
  std::byte* data() const noexcept override { return data_; }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_;
};

// Host memory needs no registration: the range itself.
class HostRegistration final : public Registration {
 public:
  explicit HostRegistration(std::span<const std::byte> range) : range_(range) {}
  std::span<const std::byte> range() const noexcept override { return range_; }

 private:
  std::span<const std::byte> range_;
};

class HostEvent final : public Event::Impl {
 public:
  bool done() override {
    std::lock_guard lock(mutex_);
    if (done_ && error_) std::rethrow_exception(error_);
    return done_;
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    if (error_) std::rethrow_exception(error_);
  }
  bool wait_for(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return done_; })) return false;
    if (error_) std::rethrow_exception(error_);
    return true;
  }
  void* native() noexcept override { return nullptr; }

  void set(std::exception_ptr error) {
    std::vector<std::function<void()>> callbacks;
    {
      std::lock_guard lock(mutex_);
      done_ = true;
      error_ = std::move(error);
      callbacks.swap(callbacks_);
    }
    changed_.notify_all();
    for (auto& callback : callbacks) callback();
  }
  // Calls back once the event is set: now, or on the thread that sets it.
  void then(std::function<void()> callback) {
    {
      std::lock_guard lock(mutex_);
      if (!done_) {
        callbacks_.push_back(std::move(callback));
        return;
      }
    }
    callback();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
  std::vector<std::function<void()>> callbacks_;
};

// The queue of one stream: one step runs at a time. Shared, so that it still exists for a step that ends
// after the stream was destroyed.
class HostQueue : public std::enable_shared_from_this<HostQueue> {
 public:
  explicit HostQueue(ThreadPool& pool) : pool_(pool) {}

  // `start` begins the step. It or a later callback calls step_done() when the step has ended.
  void push(std::function<void()> start) {
    {
      std::lock_guard lock(mutex_);
      steps_.push_back(std::move(start));
      if (running_) return;
      running_ = true;
    }
    run_next();
  }
  void push_rows(std::size_t rows, std::size_t grain, std::function<void(std::size_t, std::size_t)> body) {
    if (rows == 0) return;
    push([self = shared_from_this(), rows, grain, body = std::move(body)] {
      self->pool_.submit({rows, grain, body, [self](std::exception_ptr error) { self->step_done(error); }});
    });
  }
  void step_done(const std::exception_ptr& error) {
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(reported_, false)) error_ = nullptr;
      if (error && !error_) error_ = error;
    }
    run_next();
  }
  // A failure belongs to the work between two events. The events that are recorded after it report it, until
  // other work follows. So a batch that cannot be read does not spoil the next one.
  void report_to(HostEvent& event) {
    std::exception_ptr error;
    {
      std::lock_guard lock(mutex_);
      reported_ = true;
      error = error_;
    }
    event.set(std::move(error));
    run_next();
  }

 private:
  void run_next() {
    std::function<void()> step;
    {
      std::lock_guard lock(mutex_);
      if (steps_.empty()) {
        running_ = false;
        return;
      }
      step = std::move(steps_.front());
      steps_.pop_front();
    }
    step();
  }

  ThreadPool& pool_;
  std::mutex mutex_;
  std::deque<std::function<void()>> steps_;
  bool running_ = false;
  std::exception_ptr error_;  // the first failure since the last event
  bool reported_ = false;     // an event was recorded, and no work done since
};

// In the frame; none that fits where libjpeg-turbo would not read the file, or with a warning.
void make_index(const jpeg::FrameFile& file, std::byte* data) {
  const std::span<std::byte> frame(data, static_cast<std::size_t>(jpeg::frame_bytes(file)));
  try {
    const JpegFrame made = make_jpeg_frame(frame.first(file.bytes), file.orientation);
    if (made.file == file && made.extra_bytes == 0) {
      std::copy(made.bytes.begin(), made.bytes.end(), frame.begin());
      return;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::unsupported) throw;
  }
  std::fill(frame.begin() + static_cast<std::ptrdiff_t>(file.bytes), frame.end(), std::byte{0});
}

class HostStream final : public Stream {
 public:
  explicit HostStream(std::shared_ptr<ThreadPool> pool)
      : pool_(std::move(pool)), queue_(std::make_shared<HostQueue>(*pool_)) {}
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream() override {
    if (pool_->made_by_another_process()) return;
    try {
      synchronize();
    } catch (...) {  // was reported to those that waited for the work
    }
  }

  void copy(std::span<const CopyItem> items) override { push_copies(items); }
  void upload(const CopyItem& item) override { push_copies({&item, 1}); }
  void gather(std::span<const CopyItem> items) override { push_copies(items); }
  void copy_to_host(std::span<const CopyItem> items) override { push_copies(items); }

  void transform(const TransformWork& work) override {
    struct Owned {
      TransformWork work;
      std::vector<const std::byte*> sources;
      std::vector<SampleCrop> crops;
      std::vector<SampleSize> sizes;
      std::vector<std::uint32_t> tokens;
      std::vector<std::uint64_t> frame_bytes;
      std::vector<jpeg::FrameFile> files;
      std::vector<Instruction> instructions;
      std::vector<std::uint32_t> begins;
      std::vector<MixPair> pairs;
    };
    auto owned = std::make_shared<Owned>();
    owned->work = work;
    owned->sources.assign(work.sources.begin(), work.sources.end());
    owned->crops.assign(work.crops.begin(), work.crops.end());
    owned->work.sources = owned->sources;
    owned->work.crops = owned->crops;
    owned->sizes.assign(work.sizes.begin(), work.sizes.end());
    owned->work.sizes = owned->sizes;
    owned->tokens.assign(work.tokens.begin(), work.tokens.end());
    owned->work.tokens = owned->tokens;
    owned->frame_bytes.assign(work.frame_bytes.begin(), work.frame_bytes.end());
    owned->work.frame_bytes = owned->frame_bytes;
    owned->files.assign(work.files.begin(), work.files.end());
    owned->work.files = owned->files;
    owned->instructions.assign(work.instructions.begin(), work.instructions.end());
    owned->work.instructions = owned->instructions;
    owned->begins.assign(work.begins.begin(), work.begins.end());
    owned->work.begins = owned->begins;
    owned->pairs.assign(work.pairs.begin(), work.pairs.end());
    owned->work.pairs = owned->pairs;
    if (!owned->pairs.empty()) augment::check_pairs(owned->work);
    push_wanted(owned->sources.size(), [owned](std::size_t first, std::size_t last) {
      guarded("transform", [&] { transform_rows(owned->work, first, last); });
    });
    push_wanted(owned->pairs.size(), [owned](std::size_t first, std::size_t last) {
      augment::mix_pairs(owned->work, first, last);
    });
  }

  // For tests, in which this device stands for one with memory of its own.
  void index_jpeg(const JpegIndexWork& work) override {
    auto owned = std::make_shared<std::vector<JpegIndexWork::Frame>>(work.frames.begin(), work.frames.end());
    push_wanted(owned->size(), [owned](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) make_index((*owned)[i].file, (*owned)[i].data);
    });
  }

  void follow(const TargetWork& work) override {
    targets::check_targets(work);
    const auto owned = targets::owned_copy(work);
    push_wanted(owned->sources.size(), [owned](std::size_t first, std::size_t last) {
      guarded("targets", [&] { targets::follow_rows(*owned, first, last); });
    });
  }

  void may_leave_out(std::shared_ptr<const std::atomic<bool>> unwanted) override {
    unwanted_ = std::move(unwanted);
  }

  Event record() override {
    auto event = std::make_shared<HostEvent>();
    queue_->push([queue = queue_, event] { queue->report_to(*event); });
    return Event(event);
  }

  void wait(const Event& event) override {
    auto* impl = dynamic_cast<HostEvent*>(event.impl());
    if (impl == nullptr) return;  // done already, or nothing
    queue_->push([queue = queue_, event, impl] { impl->then([queue] { queue->step_done(nullptr); }); });
  }

  void synchronize() override { record().wait(); }
  void* native() noexcept override { return nullptr; }

 private:
  // Row by row, and none once they are not wanted any more.
  void push_wanted(std::size_t rows, std::function<void(std::size_t, std::size_t)> body) {
    queue_->push_rows(rows, 1,
                      [unwanted = unwanted_, body = std::move(body)](std::size_t first, std::size_t last) {
                        if (!unwanted || !unwanted->load(std::memory_order_relaxed)) body(first, last);
                      });
  }
  void push_copies(std::span<const CopyItem> items) {
    auto owned = std::make_shared<std::vector<CopyItem>>(items.begin(), items.end());
    queue_->push_rows(owned->size(), kCopyGrain, [owned](std::size_t first, std::size_t last) {
      guarded("copy", [&] {
        for (std::size_t i = first; i < last; ++i)
          copy_streaming((*owned)[i].target, (*owned)[i].source, (*owned)[i].size_bytes);
      });
    });
  }

  const std::shared_ptr<ThreadPool> pool_;  // ends with the last stream, when nothing is queued any more
  std::shared_ptr<HostQueue> queue_;
  std::shared_ptr<const std::atomic<bool>> unwanted_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(unsigned threads) : threads_(threads) {
    info_.kind = DeviceKind::host;
    info_.name = "host";
    info_.registers_read_only = true;
    info_.batched_copy = true;
    info_.reads_host_memory = true;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size) override {
    return std::make_unique<HostBlock>(size);
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size) override {
    return std::make_unique<HostBlock>(size);
  }
  std::uint64_t free_memory_bytes() override {
    return static_cast<std::uint64_t>(::get_avphys_pages()) *
           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                   const std::stop_token&) override {
    return std::make_unique<HostRegistration>(range);
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(pool()); }
  // The host waits, because only it can be told about a page that could not be read.
  void wait(StreamRef stream, const Event& event) override;
  void check() override {}

 private:
  // The threads of all streams. They end with the last stream: a batch that is kept holds the device, and
  // must not keep the threads of a loader that was destroyed.
  std::shared_ptr<ThreadPool> pool() {
    std::lock_guard lock(mutex_);
    std::shared_ptr<ThreadPool> pool = pool_.lock();
    if (!pool || pool->made_by_another_process())
      pool_ = pool = std::make_shared<ThreadPool>(threads_, "shard-host");
    return pool;
  }

  DeviceInfo info_;
  const unsigned threads_;
  std::mutex mutex_;
  std::weak_ptr<ThreadPool> pool_;
};

// A stream that a device made itself.
Stream& own_stream(StreamRef stream, const Device& device) {
  if (stream.stream() == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a CUDA stream, but the batch is on device {}: use wait() to read it on the host",
                            quoted(device.info().name)));
  return *stream.stream();
}

void HostDevice::wait(StreamRef stream, const Event& event) {
  own_stream(stream, *this);
  event.wait();
}

}  // namespace

void Stream::follow(const TargetWork&) {
  throw Error(ErrorCode::unsupported, "this device has no targets: masks, depth and other image fields");
}

void Stream::decode_jpeg(const JpegWork&) {
  throw Error(ErrorCode::unsupported, "this device decodes no JPEG files by kernels");
}

void Stream::index_jpeg(const JpegIndexWork&) {
  throw Error(ErrorCode::unsupported, "this device makes no indices of JPEG files");
}

std::uint64_t Stream::jpeg_workspace_bytes(const jpeg::FrameFile&) const { return 0; }

void Stream::may_leave_out(std::shared_ptr<const std::atomic<bool>>) {}

void Device::wait(StreamRef stream, const Event& event) { own_stream(stream, *this).wait(event); }
Event Device::record(StreamRef stream) { return own_stream(stream, *this).record(); }

std::shared_ptr<Device> make_host_device(unsigned threads) {
  if (threads < 1 || threads > 64)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("host device with {} threads: it must have 1 to 64", threads));
  return std::make_shared<HostDevice>(threads);
}

}  // namespace shard
