// StepDevice: a device whose work happens when the test says so, and which knows what is ordered after what.
//
// Work is only noted when it is queued; step() carries out the next piece of one stream. Independently of
// when work is carried out, each access to memory is held against the earlier ones with vector clocks: two
// accesses of which one writes, on different streams and without an event between them, are a race, on every
// run and not only on unlucky ones. So is memory given back before the host knows its accesses to be over.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shard/error.hpp"
#include "shard/loader/device.hpp"

namespace shard::testing {

class StepDevice;
class StepStream;

using Clock = std::map<int, std::uint64_t>;  // by stream: how much of its work is known to be before

inline bool before_or_equal(int stream, std::uint64_t at, const Clock& clock) {
  const auto it = clock.find(stream);
  return it != clock.end() && it->second >= at;
}

class StepEvent final : public Event::Impl {
 public:
  StepEvent(StepDevice& device, StepStream& stream, Clock clock)
      : device_(device), stream_(stream), clock_(std::move(clock)) {}
  bool done() override;
  void wait() override;
  bool wait_for(std::chrono::milliseconds timeout) override;
  void* native() noexcept override { return nullptr; }
  const Clock& clock() const { return clock_; }

 private:
  friend class StepDevice;
  friend class StepStream;
  StepDevice& device_;
  StepStream& stream_;
  Clock clock_;
  bool done_ = false;         // guarded by the device
  std::exception_ptr error_;  // likewise: the copies before it read memory that is gone
};

class StepStream final : public Stream {
 public:
  StepStream(StepDevice& device, int id) : device_(device), id_(id) {}
  StepStream(const StepStream&) = delete;
  StepStream& operator=(const StepStream&) = delete;
  ~StepStream() override;

  void copy(std::span<const CopyItem> items) override { copy_items(items); }
  void upload(const CopyItem& item) override { copy_items({&item, 1}); }
  void gather(std::span<const CopyItem> items) override { copy_items(items); }
  void copy_to_host(std::span<const CopyItem> items) override { copy_items(items); }
  void transform(const TransformWork& work) override;
  void follow(const TargetWork& work) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override { record().wait(); }
  void* native() noexcept override { return nullptr; }

 private:
  friend class StepDevice;
  struct Piece {
    std::function<void()> body;
    std::shared_ptr<StepEvent> needs;  // not before this event
  };
  void copy_items(std::span<const CopyItem> items);
  void push(Piece piece);

  StepDevice& device_;
  int id_;
  std::deque<Piece> pieces_;  // guarded by the device
  std::exception_ptr error_;  // likewise, as for the host device: of the copies since the last event
  bool reported_ = false;
  bool held_ = false;  // guarded by the device
  Clock clock_;
};

class StepDevice final : public Device {
 public:
  // Work is carried out by step(), or by a thread of the device's own in an order drawn from `seed` after
  // run_freely().
  StepDevice();
  ~StepDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size_bytes) override;
  std::unique_ptr<Block> allocate_device(std::uint64_t size_bytes) override {
    return allocate_pinned(size_bytes);
  }
  std::uint64_t free_memory_bytes() override { return std::uint64_t{1} << 30U; }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                   const std::stop_token& stop) override;
  std::unique_ptr<Stream> create_stream() override;
  Event record(StreamRef stream) override {
    if (records_fail_) throw Error(ErrorCode::io, "the test lets no event be recorded");
    return Device::record(stream);
  }
  // No stream of a consumer can be recorded from now on, as on a device that was lost.
  void fail_records() { records_fail_ = true; }
  void check() override {}

  // Carries out one piece of the stream; false: there is none, or it waits for an event.
  bool step(Stream& stream);
  // Carries out what the event needs to be done, and no more.
  void step_to(const Event& event);
  void run_freely(std::uint64_t seed);
  // run_freely() leaves this stream alone, as a slow kernel at its front would, until it is let go.
  void hold(Stream& stream);
  void let_go(Stream& stream);
  // What was queued without the order that its memory needs: "write of stream 2 to [..) races with ...".
  // Empty: nothing.
  std::vector<std::string> races();
  // A block or registration ends: the host must know all accesses to it to be over.
  void note_end(const std::byte* begin, std::uint64_t size, const char* what);

 private:
  friend class StepEvent;
  friend class StepStream;
  // By its begin: what is registered.
  std::map<const std::byte*, std::weak_ptr<const std::span<const std::byte>>> registered_;
  struct Access {
    const std::byte* begin;
    const std::byte* end;
    int stream;
    std::uint64_t at;
    bool write;
  };
  // With the lock held: `stream` accesses [begin, end) at its present clock.
  void note_access(const StepStream& stream, const std::byte* begin, std::uint64_t size, bool write);
  bool step_locked(StepStream& stream);
  void step_to_locked(const StepEvent& event);

  DeviceInfo info_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StepStream*> streams_;
  int next_stream_ = 0;
  std::vector<Access> accesses_;
  std::vector<std::string> races_;
  Clock host_;  // what a host that waited knows to be over
  bool quit_ = false;
  std::atomic<bool> records_fail_{false};
  std::thread runner_;
};

}  // namespace shard::testing
