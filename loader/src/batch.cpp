#include <fmt/format.h>

#include "lease.hpp"
#include "shard/error.hpp"
#include "shard/loader/loader.hpp"
#include "transport/transport.hpp"

namespace shard {

Batch::Lease::~Lease() { release(nullptr); }

void Batch::Lease::release(void* native_stream) {
  if (slot == nullptr || ring->made_by_another_process()) return;
  Event released;
  try {
    released = native_stream != nullptr ? ring->device().record_native(native_stream) : slot->ready_event;
  } catch (...) {  // a lost device: the next call of the loader says so
  }
  ring->give_back(std::exchange(slot, nullptr), std::move(released), true);
}

Batch::Batch(std::shared_ptr<Lease> lease) noexcept : lease_(std::move(lease)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

Slot& Batch::Lease::held() const {
  if (slot == nullptr)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("batch {} of epoch {} was released: its memory may hold another one", index, epoch));
  return *slot;
}

std::uint64_t Batch::size() const noexcept { return lease_->size; }
std::uint64_t Batch::epoch() const noexcept { return lease_->epoch; }
std::uint64_t Batch::index() const noexcept { return lease_->index; }
const SampleSpec& Batch::spec() const noexcept { return lease_->spec; }
const std::byte* Batch::images() const noexcept {
  return lease_->slot != nullptr ? lease_->slot->images->data() : nullptr;
}
std::span<const std::uint64_t> Batch::ids() const noexcept {
  if (lease_->slot == nullptr) return {};
  return lease_->slot->indices.samples;
}
std::span<const std::uint8_t> Batch::mask() const noexcept {
  if (lease_->slot == nullptr) return {};
  return lease_->slot->indices.mask;
}

const ColumnView& Batch::column(std::string_view name) const {
  for (const ColumnView& view : lease_->held().columns)
    if (view.name == name) return view;
  throw Error(ErrorCode::not_found, fmt::format("the data set has no column '{}'", name));
}

std::span<const std::int64_t> Batch::labels() const {
  const ColumnView& view = column("labels");
  if (view.dtype != DType::i64 || view.shape.size() != 1)
    throw Error(ErrorCode::unsupported,
                fmt::format("labels are {} with {} axes, not one i64 a sample: use column(\"labels\")",
                            to_string(view.dtype), view.shape.size()));
  return {reinterpret_cast<const std::int64_t*>(view.host), view.shape[0]};
}

void Batch::wait_on(void* native_stream) const {
  if (lease_->ring->made_by_another_process())
    throw Error(ErrorCode::unsupported,
                "this batch was made by another process: its copies may never end after fork()");
  try {
    lease_->ring->device().wait_native(native_stream, lease_->held().ready_event);
    if (native_stream == nullptr) check_frames(*lease_->dataset, lease_->held());
  } catch (const Error&) {
    check_all_alive(*lease_->dataset);
    throw;
  }
}

bool Batch::wait_ready(std::chrono::milliseconds timeout) const {
  if (lease_->ring->made_by_another_process()) return true;  // which wait_on() refuses
  try {
    return lease_->held().ready_event.wait_for(timeout);
  } catch (const Error&) {  // which wait_on() throws
    return true;
  }
}

void Batch::release(void* native_stream) { lease_->release(native_stream); }

}  // namespace shard
