#include "cuda/registration.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>

#include "shard/error.hpp"

namespace shard {

namespace {

class CudaRegistration final : public Registration {
 public:
  CudaRegistration(const CudaContext& context, std::span<const std::byte> range, unsigned flags)
      : context_(context), range_(range) {
    const CudaScope scope(context);
    const cudaError_t error = cudaHostRegister(begin(), range.size(), flags);
    if (error == cudaSuccess) return;
    cudaGetLastError();
    const bool memory = error == cudaErrorMemoryAllocation;
    throw Error(memory ? ErrorCode::resource : ErrorCode::unsupported,
                fmt::format("registering {} bytes of a mapped shard was refused: {} ({})", range.size(),
                            cudaGetErrorString(error), cudaGetErrorName(error)));
  }
  CudaRegistration(const CudaRegistration&) = delete;
  CudaRegistration& operator=(const CudaRegistration&) = delete;
  ~CudaRegistration() override {
    quietly(context_, [&] { cudaHostUnregister(begin()); });
  }
  std::span<const std::byte> range() const noexcept override { return range_; }

 private:
  void* begin() const noexcept { return const_cast<std::byte*>(range_.data()); }
  const CudaContext context_;
  std::span<const std::byte> range_;
};

// Memory is page-locked for the whole process, so loaders of several devices that use one mapping share a
// registration that covers their ranges. Registrations are made and released under one mutex, so that no
// range is registered while it is being released, and registered ranges do not overlap.
class SharedRegistration final : public Registration {
 public:
  SharedRegistration(const CudaContext& context, std::span<const std::byte> range, unsigned flags,
                     const std::stop_token& stop)
      : range_(range) {
    std::unique_lock lock(mutex());
    // No part of the range may be registered twice, so this waits until an overlapping registration is
    // released (another loader's probe is released at once). If it stays for long, CUDA refuses the new one.
    released().wait_for(lock, stop, kPatience, [&] {
      const auto other = overlapping(range);
      return !other || covers(*other, range);
    });
    if (const auto other = overlapping(range); other && covers(*other, range)) {
      shared_ = other;
      return;
    }
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "registering a mapped shard was stopped");
    shared_ = std::make_shared<CudaRegistration>(context, range, flags);
    registered()[range.data()] = shared_;
  }
  SharedRegistration(const SharedRegistration&) = delete;
  SharedRegistration& operator=(const SharedRegistration&) = delete;
  ~SharedRegistration() override {
    const std::lock_guard lock(mutex());
    const std::byte* const begin = shared_->range().data();
    shared_.reset();
    const auto it = registered().find(begin);
    if (it->second.expired()) registered().erase(it);
    released().notify_all();
  }
  std::span<const std::byte> range() const noexcept override { return range_; }

 private:
  static constexpr std::chrono::seconds kPatience{10};
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::condition_variable_any& released() {
    static std::condition_variable_any one;
    return one;
  }
  // What is registered, by its begin.
  static std::map<const std::byte*, std::weak_ptr<CudaRegistration>>& registered() {
    static std::map<const std::byte*, std::weak_ptr<CudaRegistration>> all;
    return all;
  }
  static bool covers(const Registration& registration, std::span<const std::byte> range) {
    const std::span<const std::byte> whole = registration.range();
    return whole.data() <= range.data() && range.data() + range.size() <= whole.data() + whole.size();
  }
  // The last registration that overlaps the range, or null. The result must not be kept without the mutex.
  static std::shared_ptr<CudaRegistration> overlapping(std::span<const std::byte> range) {
    const auto after = registered().lower_bound(range.data() + range.size());
    if (after == registered().begin()) return nullptr;
    auto last = std::prev(after)->second.lock();
    const std::span<const std::byte> found = last->range();
    return found.data() + found.size() > range.data() ? last : nullptr;
  }

  std::span<const std::byte> range_;
  std::shared_ptr<CudaRegistration> shared_;
};

}  // namespace

std::unique_ptr<Registration> register_shared(const CudaContext& context, std::span<const std::byte> range,
                                              unsigned flags, const std::stop_token& stop) {
  return std::make_unique<SharedRegistration>(context, range, flags, stop);
}

}  // namespace shard
