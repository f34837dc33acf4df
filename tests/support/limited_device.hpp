// LimitedDevice: the host device with less to give.
//
// It counts what is alive (nothing may be left after a loader), refuses calls of one kind from the k-th on,
// and can stand for a GPU: with reads_host_memory off, samples are registered and copied to "device" memory
// before the transform.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "shard/error.hpp"
#include "shard/loader/device.hpp"

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
  }

  // Refuses the k-th call of this kind, counted from 1, and all later ones.
  void refuse_from(DeviceCall call, std::uint64_t k, ErrorCode code) {
    refused_ = call;
    refused_from_ = k;
    code_ = code;
  }
  std::uint64_t calls(DeviceCall call) const { return count(call).calls; }
  std::int64_t alive(DeviceCall call) const { return count(call).alive; }
  std::uint64_t registered_bytes() const { return registered_bytes_; }
  std::uint64_t most_registered_bytes() const { return most_registered_bytes_; }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size_bytes) override {
    enter(DeviceCall::pinned);
    return std::make_unique<CountedBlock>(count(DeviceCall::pinned), inner_->allocate_pinned(size_bytes));
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size_bytes) override {
    enter(DeviceCall::device);
    return std::make_unique<CountedBlock>(count(DeviceCall::device), inner_->allocate_device(size_bytes));
  }
  std::uint64_t free_memory_bytes() override { return std::uint64_t{1} << 20U; }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range) override {
    enter(DeviceCall::registration);
    return std::make_unique<CountedRegistration>(*this, range);
  }
  std::unique_ptr<Stream> create_stream() override {
    enter(DeviceCall::stream);
    return std::make_unique<CountedStream>(count(DeviceCall::stream), inner_->create_stream());
  }
  void wait_native(void* native_stream, const Event& event) override {
    inner_->wait_native(native_stream, event);
  }
  Event record_native(void* native_stream) override { return inner_->record_native(native_stream); }
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
  class CountedBlock final : public Block {
   public:
    CountedBlock(Count& count, std::unique_ptr<Block> inner) : alive_(count), inner_(std::move(inner)) {}
    std::byte* data() const noexcept override { return inner_->data(); }
    std::uint64_t size_bytes() const noexcept override { return inner_->size_bytes(); }

   private:
    Alive alive_;
    std::unique_ptr<Block> inner_;
  };
  class CountedRegistration final : public Registration {
   public:
    CountedRegistration(LimitedDevice& device, std::span<const std::byte> range)
        : device_(device),
          alive_(device.count(DeviceCall::registration)),
          inner_(device.inner_->register_read_only(range)) {
      device_.registered_bytes_ += range.size();
      if (device_.registered_bytes_ > device_.most_registered_bytes_)
        device_.most_registered_bytes_ = device_.registered_bytes_.load();
    }
    CountedRegistration(const CountedRegistration&) = delete;
    CountedRegistration& operator=(const CountedRegistration&) = delete;
    ~CountedRegistration() override { device_.registered_bytes_ -= range().size(); }
    std::span<const std::byte> range() const noexcept override { return inner_->range(); }

   private:
    LimitedDevice& device_;
    Alive alive_;
    std::unique_ptr<Registration> inner_;
  };
  class CountedStream final : public Stream {
   public:
    CountedStream(Count& count, std::unique_ptr<Stream> inner) : alive_(count), inner_(std::move(inner)) {}
    void copy(std::span<const CopyItem> items) override { inner_->copy(items); }
    void upload(const CopyItem& item) override { inner_->upload(item); }
    void gather(std::span<const CopyItem> items) override { inner_->gather(items); }
    void transform(const TransformWork& work) override { inner_->transform(work); }
    void copy_to_host(std::span<const CopyItem> items) override { inner_->copy_to_host(items); }
    Event record() override { return inner_->record(); }
    void wait(const Event& event) override { inner_->wait(event); }
    void synchronize() override { inner_->synchronize(); }
    void* native() noexcept override { return inner_->native(); }

   private:
    Alive alive_;
    std::unique_ptr<Stream> inner_;
  };

  Count& count(DeviceCall call) { return counts_[static_cast<std::size_t>(call)]; }
  const Count& count(DeviceCall call) const { return counts_[static_cast<std::size_t>(call)]; }
  void enter(DeviceCall call) {
    const std::uint64_t number = ++count(call).calls;
    if (refused_from_ != 0 && call == refused_ && number >= refused_from_)
      throw Error(code_, std::string("the test refuses ") + to_string(call) + " from call " +
                             std::to_string(refused_from_) + " on");
  }

  std::shared_ptr<Device> inner_;
  DeviceInfo info_;
  std::array<Count, 4> counts_;
  DeviceCall refused_ = DeviceCall::pinned;
  std::uint64_t refused_from_ = 0;
  ErrorCode code_ = ErrorCode::resource;
  std::atomic<std::uint64_t> registered_bytes_{0};
  std::atomic<std::uint64_t> most_registered_bytes_{0};
};

// A GPU as far as the loader can tell, without one.
inline std::shared_ptr<LimitedDevice> make_gpu_like_device(unsigned threads) {
  return std::make_shared<LimitedDevice>(make_host_device(threads), false);
}

}  // namespace shard::testing
