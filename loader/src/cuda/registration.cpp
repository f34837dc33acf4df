#include "cuda/registration.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "shard/error.hpp"

namespace shard {

namespace {

// Pages are locked in pieces. While that goes on no other thread gets into CUDA, also not between two calls
// (H200: 10 batches a second, for 20 GB/s of locking, whatever the size of the pieces), so each piece is
// followed by a pause as long. A refusal comes early and is rolled back.
class CudaRegistration final : public Registration {
 public:
  CudaRegistration(const CudaContext& context, std::span<const std::byte> range, unsigned flags,
                   const std::stop_token& stop)
      : context_(context), range_(range) {
    using Clock = std::chrono::steady_clock;
    const CudaScope scope(context);
    for (std::size_t at = 0; at < range.size(); at += kRegistrationPiece) {
      if (stop.stop_requested()) {
        release();
        throw Error(ErrorCode::cancelled, "registering a mapped shard was stopped");
      }
      void* begin = const_cast<std::byte*>(range.data() + at);
      const auto started = Clock::now();
      const cudaError_t error =
          cudaHostRegister(begin, std::min(kRegistrationPiece, range.size() - at), flags);
      if (error != cudaSuccess) {
        cudaGetLastError();
        release();
        const bool memory = error == cudaErrorMemoryAllocation;
        throw Error(memory ? ErrorCode::resource : ErrorCode::unsupported,
                    fmt::format("registering {} bytes of a mapped shard was refused: {} ({})", range.size(),
                                cudaGetErrorString(error), cudaGetErrorName(error)));
      }
      pieces_.push_back(begin);
      std::this_thread::sleep_for(Clock::now() - started);
    }
  }
  CudaRegistration(const CudaRegistration&) = delete;
  CudaRegistration& operator=(const CudaRegistration&) = delete;
  ~CudaRegistration() override { release(); }
  std::span<const std::byte> range() const noexcept override { return range_; }

 private:
  void release() noexcept {
    quietly(context_, [&] {
      for (void* piece : pieces_) cudaHostUnregister(piece);
    });
    pieces_.clear();
  }
  const CudaContext context_;
  std::span<const std::byte> range_;
  std::vector<void*> pieces_;
};

// Page-locking belongs to the process: loaders of several devices that use one mapping share a registration
// that covers what they ask for. Made and released under one mutex, so that nobody registers what is being
// released, and ranges that are registered do not overlap.
class SharedRegistration final : public Registration {
 public:
  SharedRegistration(const CudaContext& context, std::span<const std::byte> range, unsigned flags,
                     const std::stop_token& stop)
      : range_(range) {
    std::unique_lock lock(mutex());
    // A part of the range cannot be registered a second time: it is waited for until it is released (another
    // loader's probe goes at once). One that stays for long is left to CUDA to refuse.
    released().wait_for(lock, stop, kPatience, [&] {
      const auto other = overlapping(range);
      return !other || covers(*other, range);
    });
    if (const auto other = overlapping(range); other && covers(*other, range)) {
      shared_ = other;
      return;
    }
    shared_ = std::make_shared<CudaRegistration>(context, range, flags, stop);
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
  // The last one that overlaps the range, or null; not to be kept without the mutex.
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
