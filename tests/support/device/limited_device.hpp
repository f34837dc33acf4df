// LimitedDevice: the host device with less to give.
//
// It counts what is alive (nothing may be left after a loader), refuses calls of one kind from the k-th on,
// holds registrations up until the test lets them go, and can stand for a GPU: with reads_host_memory off,
// samples are registered and copied to "device" memory before the transform, and copies may read registered
// and pinned memory only, which must stay until they are done (faults()).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "support/device/forwarding_stream.hpp"

namespace shard::testing {

enum class DeviceCall : std::uint8_t { pinned, device, registration, stream };
inline constexpr std::array<DeviceCall, 4> kDeviceCalls{DeviceCall::pinned, DeviceCall::device,
                                                        DeviceCall::registration, DeviceCall::stream};
inline const char* to_string(DeviceCall call) {
  constexpr std::array<const char*, 4> kNames{"pinned memory", "device memory", "registration", "stream"};
  return kNames[static_cast<std::size_t>(call)];
}

class LimitedDevice final : public Device {
 public:
  LimitedDevice(std::shared_ptr<Device> inner, bool reads_host_memory)
      : inner_(std::move(inner)), info_(inner_->info()) {
    info_.reads_host_memory = reads_host_memory;
    if (!reads_host_memory) info_.registration_piece_bytes = std::uint64_t{1} << 20U;
  }

  // Refuses the k-th call of this kind, counted from 1, and those after it, `count` in all; k 0: none any
  // longer.
  void refuse_from(DeviceCall call, std::uint64_t k, ErrorCode code,
                   std::uint64_t count = std::numeric_limits<std::uint64_t>::max()) {
    refused_count_ = count;
    refused_ = call;
    refused_from_ = k;
    code_ = code;
  }
  // Registrations from now on take so long.
  void slow_registrations(std::chrono::milliseconds time) { registration_time_ = time; }
  // Refuses registrations that are asked for on other threads than the caller's: those ahead of the order.
  void refuse_registrations_ahead(ErrorCode code) {
    own_thread_ = std::this_thread::get_id();
    code_ = code;
  }
  // Is called on the feeder's thread before a copy or a transform is queued, with each address that it is to
  // read from.
  void call_before_reads(std::function<void(const std::byte* source)> hook) {
    const std::lock_guard lock(hook_mutex_);
    before_reads_ = std::move(hook);
  }
  // Registrations from the k-th on, counted from 1, wait until they are stopped; infinite: none.
  void hold_registrations_from(std::uint64_t k) {
    const std::lock_guard lock(mutex_);
    held_from_ = k;
    changed_.notify_all();
  }
  // DeviceInfo::registration_piece_bytes; a multiple of a page.
  void set_piece_bytes(std::uint64_t bytes) { info_.registration_piece_bytes = bytes; }
  // Copied ranges so far, by where they were read.
  std::uint64_t copies_in_place() const { return copies_in_place_; }
  std::uint64_t copies_from_pinned() const { return copies_from_pinned_; }
  bool is_registered(const std::byte* at) const {
    const std::lock_guard lock(mutex_);
    return lies_in(registered_, at, 1);
  }
  // What no GPU would forgive. Empty: nothing.
  std::vector<std::string> faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
  std::uint64_t calls(DeviceCall call) const { return count(call).calls; }
  std::int64_t alive(DeviceCall call) const { return count(call).alive; }
  std::uint64_t registered_bytes() const { return registered_bytes_; }
  std::uint64_t most_registered_bytes() const { return most_registered_bytes_; }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size_bytes) override {
    enter(DeviceCall::pinned);
    return std::make_unique<CountedBlock>(*this, DeviceCall::pinned, inner_->allocate_pinned(size_bytes));
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size_bytes) override {
    enter(DeviceCall::device);
    return std::make_unique<CountedBlock>(*this, DeviceCall::device, inner_->allocate_device(size_bytes));
  }
  std::uint64_t free_memory_bytes() override { return std::uint64_t{1} << 20U; }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                   const std::stop_token& stop) override {
    const std::uint64_t number = enter(DeviceCall::registration);
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, stop, kLongestHold, [&] { return number < held_from_; }))
        throw Error(stop.stop_requested() ? ErrorCode::cancelled : ErrorCode::resource,
                    "the test holds registrations up");
    }
    std::this_thread::sleep_for(registration_time_.load());
    return std::make_unique<CountedRegistration>(*this, range);
  }
  std::unique_ptr<Stream> create_stream() override {
    enter(DeviceCall::stream);
    return std::make_unique<CountedStream>(*this, inner_->create_stream());
  }
  void wait(StreamRef stream, const Event& event) override { inner_->wait(stream, event); }
  Event record(StreamRef stream) override { return inner_->record(stream); }
  void check() override { inner_->check(); }

 private:
  struct Count {
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::int64_t> alive{0};
  };
  class Alive {
   public:
    explicit Alive(Count& count) : count_(count) { ++count_.alive; }
    Alive(const Alive&) = delete;
    Alive& operator=(const Alive&) = delete;
    ~Alive() { --count_.alive; }

   private:
    Count& count_;
  };
  using Range = std::span<const std::byte>;
  class CountedBlock final : public Block {
   public:
    CountedBlock(LimitedDevice& device, DeviceCall kind, std::unique_ptr<Block> inner)
        : device_(device), kind_(kind), alive_(device.count(kind)), inner_(std::move(inner)) {
      if (kind_ == DeviceCall::pinned) device_.note_begin(device_.pinned_, range());
    }
    CountedBlock(const CountedBlock&) = delete;
    CountedBlock& operator=(const CountedBlock&) = delete;
    ~CountedBlock() override {
      if (kind_ == DeviceCall::pinned) device_.note_end(device_.pinned_, range());
    }
    std::byte* data() const noexcept override { return inner_->data(); }
    std::uint64_t size_bytes() const noexcept override { return inner_->size_bytes(); }

   private:
    Range range() const { return {data(), size_bytes()}; }
    LimitedDevice& device_;
    DeviceCall kind_;
    Alive alive_;
    std::unique_ptr<Block> inner_;
  };
  class CountedRegistration final : public Registration {
   public:
    CountedRegistration(LimitedDevice& device, std::span<const std::byte> range)
        : device_(device),
          alive_(device.count(DeviceCall::registration)),
          inner_(device.inner_->register_read_only(range)) {
      device_.note_begin(device_.registered_, range);
      device_.registered_bytes_ += range.size();
      if (device_.registered_bytes_ > device_.most_registered_bytes_)
        device_.most_registered_bytes_ = device_.registered_bytes_.load();
    }
    CountedRegistration(const CountedRegistration&) = delete;
    CountedRegistration& operator=(const CountedRegistration&) = delete;
    ~CountedRegistration() override {
      device_.note_end(device_.registered_, range());
      device_.registered_bytes_ -= range().size();
    }
    std::span<const std::byte> range() const noexcept override { return inner_->range(); }

   private:
    LimitedDevice& device_;
    Alive alive_;
    std::unique_ptr<Registration> inner_;
  };
  class CountedStream final : public ForwardingStream {
   public:
    CountedStream(LimitedDevice& device, std::unique_ptr<Stream> inner)
        : ForwardingStream(std::move(inner)), device_(device), alive_(device.count(DeviceCall::stream)) {}
    void transform(const TransformWork& work) override {
      for (const std::byte* source : work.sources) device_.before_read(source);
      ForwardingStream::transform(work);
    }
    void copy(std::span<const CopyItem> items) override {
      for (const CopyItem& item : items) device_.before_read(item.source);
      ForwardingStream::copy(items);
      if (!device_.info_.reads_host_memory) device_.note_copies(items, record());
    }

   private:
    LimitedDevice& device_;
    Alive alive_;
  };

  static constexpr std::chrono::seconds kLongestHold{30};  // whoever waits for one to end has failed by then

  Count& count(DeviceCall call) { return counts_[static_cast<std::size_t>(call)]; }
  const Count& count(DeviceCall call) const { return counts_[static_cast<std::size_t>(call)]; }
  std::uint64_t enter(DeviceCall call) {
    const std::uint64_t number = ++count(call).calls;
    if (refused_from_ != 0 && call == refused_ && number >= refused_from_ &&
        number - refused_from_ < refused_count_)
      throw Error(code_, std::string("the test refuses ") + to_string(call) + " from call " +
                             std::to_string(refused_from_) + " on");
    if (call == DeviceCall::registration && own_thread_ != std::thread::id() &&
        own_thread_ != std::this_thread::get_id())
      throw Error(code_, "the test refuses registrations ahead");
    return number;
  }

  void before_read(const std::byte* source) {
    const std::lock_guard lock(hook_mutex_);
    if (before_reads_) before_reads_(source);
  }
  static bool overlap(Range a, Range b) {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
  }
  static bool lies_in(const std::vector<Range>& ranges, const std::byte* begin, std::uint64_t size) {
    return std::any_of(ranges.begin(), ranges.end(), [&](Range range) {
      return range.data() <= begin && begin + size <= range.data() + range.size();
    });
  }
  static bool done(const Event& event) {
    try {
      return event.done();
    } catch (const Error&) {  // its work failed, and is over
      return true;
    }
  }
  void note_begin(std::vector<Range>& ranges, Range range) {
    const std::lock_guard lock(mutex_);
    ranges.push_back(range);
  }
  void note_end(std::vector<Range>& ranges, Range range) {
    const std::lock_guard lock(mutex_);
    const auto same = [&](Range other) {
      return other.data() == range.data() && other.size() == range.size();
    };
    ranges.erase(std::find_if(ranges.begin(), ranges.end(), same));
    for (const auto& [source, event] : under_way_)
      if (overlap(source, range) && !lies_in(ranges, source.data(), source.size()) && !done(event))
        faults_.emplace_back("memory ends that is being copied");
  }
  void note_copies(std::span<const CopyItem> items, const Event& event) {
    const std::lock_guard lock(mutex_);
    std::erase_if(under_way_, [](const auto& copy) { return done(copy.second); });
    for (const CopyItem& item : items) {
      const bool in_place = lies_in(registered_, item.source, item.size_bytes);
      const bool pinned = !in_place && lies_in(pinned_, item.source, item.size_bytes);
      if (in_place) ++copies_in_place_;
      if (pinned) ++copies_from_pinned_;
      if (!in_place && !pinned) faults_.emplace_back("a copy reads memory neither registered nor pinned");
      under_way_.emplace_back(Range{item.source, item.size_bytes}, event);
    }
  }

  std::shared_ptr<Device> inner_;
  DeviceInfo info_;
  std::array<Count, 4> counts_;
  DeviceCall refused_ = DeviceCall::pinned;
  std::atomic<std::uint64_t> refused_from_ = 0;
  std::atomic<std::uint64_t> refused_count_ = 0;
  std::atomic<std::chrono::milliseconds> registration_time_{std::chrono::milliseconds(0)};
  ErrorCode code_ = ErrorCode::resource;
  std::mutex hook_mutex_;
  std::function<void(const std::byte*)> before_reads_;  // guarded by hook_mutex_
  std::thread::id own_thread_;                          // none: registrations are granted on every thread
  std::atomic<std::uint64_t> registered_bytes_{0};
  std::atomic<std::uint64_t> most_registered_bytes_{0};
  std::atomic<std::uint64_t> copies_in_place_{0};
  std::atomic<std::uint64_t> copies_from_pinned_{0};

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t held_from_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<Range> registered_;
  std::vector<Range> pinned_;
  std::vector<std::pair<Range, Event>> under_way_;
  std::vector<std::string> faults_;
};

// A GPU as far as the loader can tell, without one.
inline std::shared_ptr<LimitedDevice> make_gpu_like_device(unsigned threads) {
  return std::make_shared<LimitedDevice>(make_host_device(threads), false);
}

}  // namespace shard::testing
