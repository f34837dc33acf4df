#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/quote.hpp"
#include "codec/sample_errors.hpp"
#include "engine/lease.hpp"
#include "shard/error.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

namespace {

[[noreturn]] void refuse_moved() {
  throw Error(ErrorCode::invalid_argument, "this batch was moved from: another object has it now");
}

}  // namespace

LentSlot::~LentSlot() {
  try {
    give_back();
  } catch (...) {  // the ring has failed, and the loader's next call throws why
  }
}

void LentSlot::give_back() {
  if (slot_ == nullptr || ring_->made_by_another_process()) return;
  Slot* const slot = std::exchange(slot_, nullptr);
  try {
    std::vector<Event> readers;
    std::vector<StreamRef> reading;
    for (const StreamRef& stream : streams_) {
      if (stream.ended()) continue;
      if (slot->batches > 1 && stream.is_default())
        reading.push_back(stream);
      else
        readers.push_back(ring_->device().record(stream));
    }
    if (readers.empty() && reading.empty()) readers.push_back(slot->ready_event);
    ring_->give_back(slot, std::move(readers), reading);
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    const Error failure(
        known != nullptr ? known->code() : ErrorCode::resource,
        fmt::format("batch {} of epoch {} cannot be released, because its streams cannot tell when they are "
                    "done: {}; its memory is not reused and the loader has stopped: make a new loader",
                    index_, slot->epoch, error.what()));
    ring_->lost(std::make_exception_ptr(failure));
    throw failure;
  }
}

void LentSlot::rethrow_to_loader() {
  try {
    rethrow_named(dataset_);
  } catch (...) {
    ring_->spoiled(*slot_, std::current_exception());
    throw;
  }
}

// Once the batch is done.
void LentSlot::check_verdict() const {
  if (slot_->verdict) slot_->verdict->check(slot_->verdict->batch(), first_, end_);
}

void LentSlot::wait() {
  if (ring_->made_by_another_process())
    throw Error(ErrorCode::unsupported,
                "this batch was made by another process: its copies may never end after fork()");
  try {
    slot_->ready_event.wait();
    slot_->copied_event.wait();  // has ended by now; throws if it failed
    check_verdict();
  } catch (const Error&) {
    rethrow_to_loader();
  }
  const std::lock_guard lock(mutex_);
  waited_ = true;
}

bool LentSlot::wait_ready(std::chrono::milliseconds timeout) const {
  if (ring_->made_by_another_process()) return true;  // wait() throws
  try {
    return slot_->ready_event.wait_for(timeout);
  } catch (const Error&) {  // wait() throws it
    return true;
  }
}

void LentSlot::wait_on(StreamRef stream) {
  if (ring_->made_by_another_process())
    throw Error(ErrorCode::unsupported,
                "this batch was made by another process: its copies may never end after fork()");
  const std::lock_guard lock(mutex_);
  // Allocates now, so that remember_locked() cannot fail after the stream was told to wait.
  streams_.reserve(streams_.size() + 1);
  try {
    const bool once_for_all = slot_->batches > 1 && stream.is_default();
    if (!once_for_all || !ring_->is_waiting(*slot_, stream)) {
      ring_->device().wait(stream, slot_->ready_event);
      if (once_for_all) ring_->waits(*slot_, stream);
    }
    if (ring_->device().info().kind == DeviceKind::host && slot_->ready_event.done()) {
      slot_->copied_event.wait();
      check_verdict();
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) throw;  // the stream is not valid
    rethrow_to_loader();
  }
  remember_locked(stream);
  waited_ = true;
}

std::vector<std::string> LentSlot::texts(std::string_view name) const {
  std::vector<std::string> texts;
  for (std::size_t row = first_; row < end_; ++row)
    texts.push_back(dataset_.text(slot_->indices.samples[row], name));
  return texts;
}

void LentSlot::refuse_column(std::string_view name) const {
  std::string known;
  for (const SlotColumn& column : slot_->columns) known += (known.empty() ? "" : ", ") + quoted(column.name);
  const std::vector<ColumnSpec>& columns = dataset_.info().columns;
  const bool text = std::any_of(columns.begin(), columns.end(), [&](const ColumnSpec& column) {
    return column.name == name && column.kind == ColumnKind::text;
  });
  if (text)
    throw Error(ErrorCode::unsupported,
                fmt::format("column {} is text, which is no tensor: use texts()", quoted(name)));
  throw Error(ErrorCode::not_found, fmt::format("a batch has no column {}; it has {}", quoted(name), known));
}

void LentSlot::remember(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  remember_locked(stream);
}

void LentSlot::remember_locked(StreamRef stream) {
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
}

void LentSlot::wait_unless_ordered() {
  {
    const std::lock_guard lock(mutex_);
    if (waited_) return;
  }
  wait();
}

Batch::Batch(std::shared_ptr<Lease> lease) noexcept : lease_(std::move(lease)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

LentSlot& Batch::Lease::held() const {
  if (!lent)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("batch {} of epoch {} was released: its memory may contain another batch", index, epoch));
  return *lent;
}

Batch::Lease& Batch::lease() const {
  if (!lease_) refuse_moved();
  return *lease_;
}

std::uint64_t Batch::size() const noexcept { return lease_ ? lease_->size : 0; }
std::uint64_t Batch::epoch() const noexcept { return lease_ ? lease_->epoch : 0; }
std::uint64_t Batch::index() const noexcept { return lease_ ? lease_->index : 0; }
const SampleSpec& Batch::spec(std::size_t view) const {
  const std::vector<SampleSpec>& specs = lease().specs;
  if (view >= specs.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("view {} of a batch that has {} (LoaderOptions::further_views)", view, specs.size()));
  return specs[view];
}
std::size_t Batch::views() const { return lease().specs.size(); }
std::span<const std::uint64_t> Batch::ids() const noexcept {
  if (!lease_ || !lease_->lent) return {};
  const LentSlot& lent = *lease_->lent;
  return std::span(lent.slot().indices.samples).subspan(lent.first_row(), lent.rows());
}
std::span<const std::uint8_t> Batch::mask() const noexcept {
  if (!lease_ || !lease_->lent) return {};
  const LentSlot& lent = *lease_->lent;
  return std::span(lent.slot().indices.mask).subspan(lent.first_row(), lent.rows());
}

std::uint64_t TensorView::elements() const noexcept {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) product *= extent;
  return product;
}

std::uint64_t TensorView::size_bytes() const noexcept { return elements() * shard::size_bytes(dtype); }

void TensorView::check_element_size(std::size_t size) const {
  if (size == shard::size_bytes(dtype)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("elements of {} have {} bytes, not {}: use a type of that size", to_string(dtype),
                          shard::size_bytes(dtype), size));
}

TensorView Batch::view(const std::byte* data, DType dtype, std::vector<std::uint64_t> shape,
                       bool on_device) const {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.strides.assign(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    view.strides[i - 1] = view.strides[i] * static_cast<std::int64_t>(shape[i]);
  view.shape = std::move(shape);
  if (on_device) {
    const DeviceInfo& device = lease().held().device().info();
    view.device = device.kind;
    view.ordinal = device.ordinal;
  }
  return view;
}

// `begin`: where the column's rows of the whole slot begin.
TensorView Batch::rows_of(const SlotColumn& column, const std::byte* begin, bool on_device) const {
  const LentSlot& lent = lease().held();
  TensorView rows = view(begin, column.dtype, column.shape, on_device);
  if (lent.slot().batches == 1) return rows;  // the first axis may be another one than that of the samples
  rows.shape[0] = lent.rows();
  rows.data += lent.first_row() * static_cast<std::uint64_t>(rows.strides[0]) * shard::size_bytes(rows.dtype);
  return rows;
}

TensorView Batch::images(std::size_t view_number) const {
  const LentSlot& lent = lease().held();
  const Slot& slot = lent.slot();
  const SampleSpec& delivered = spec(view_number);
  const std::vector<std::uint32_t>& tokens = lease().tokens[view_number];
  std::vector<std::uint64_t> shape{tokens.empty() ? size() : tokens.back()};
  for (const std::uint32_t extent : delivered.shape()) shape.push_back(extent);
  const std::uint64_t first = slot.images_offsets[view_number] + lent.first_row() * delivered.size_bytes();
  return view(slot.images->data() + first, delivered.dtype, std::move(shape), true);
}

TensorView Batch::device_ids() const {
  const SlotColumn& ids = lease().held().slot().ids;
  return rows_of(ids, ids.device, true);
}

TensorView Batch::device_mask() const {
  const SlotColumn& mask = lease().held().slot().mask;
  return rows_of(mask, mask.device, true);
}

const SlotColumn& Batch::Lease::column(std::string_view name, std::size_t view) const {
  const SlotColumn* found = nullptr;  // of the view, else of all
  for (const SlotColumn& column : held().slot().columns)
    if (column.name == name && (found == nullptr || column.view == view)) found = &column;
  if (found == nullptr) held().refuse_column(name);
  return *found;
}

TensorView Batch::column(std::string_view name, std::size_t number) const {
  static_cast<void>(spec(number));  // throws if there is no such view
  const SlotColumn& column = lease().column(name, number);
  return rows_of(column, column.device, true);
}

std::vector<std::uint64_t> Batch::rows_together() const {
  std::vector<std::uint64_t> rows;
  std::size_t first = 0;
  for (const std::size_t end : lease().held().slot().ends) rows.push_back(end - std::exchange(first, end));
  return rows;
}

std::size_t Batch::place_together() const { return lease().held().batch(); }

TensorView Batch::column_together(std::string_view name, std::size_t number) const {
  static_cast<void>(spec(number));  // throws if there is no such view
  const SlotColumn& column = lease().column(name, number);
  return view(column.device, column.dtype, column.shape, true);
}

TensorView Batch::field(std::string_view name, std::size_t number) const {
  static_cast<void>(spec(number));  // throws if there is no such view
  std::string known;
  for (const SlotColumn& field : lease().held().slot().fields) {
    if (field.name == name && field.view == number) return rows_of(field, field.device, true);
    if (field.view == 0) known += (known.empty() ? "" : ", ") + quoted(field.name);
  }
  throw Error(ErrorCode::not_found, fmt::format("a batch has no field {} (option fields); it has {}",
                                                quoted(name), known.empty() ? std::string("none") : known));
}

TensorView Batch::host_column(std::string_view name, std::size_t number) const {
  static_cast<void>(spec(number));  // throws if there is no such view
  const SlotColumn& column = lease().column(name, number);
  return rows_of(column, column.host, false);
}

std::vector<std::string> Batch::texts(std::string_view name) const { return lease().held().texts(name); }

std::span<const std::int64_t> Batch::labels() const {
  const SlotColumn& labels = lease().column("labels", 0);
  if (labels.dtype != DType::i64 || labels.shape.size() != 1)
    throw Error(ErrorCode::unsupported,
                fmt::format("labels are {} with {} axes, not one i64 per sample: use host_column(\"labels\")",
                            to_string(labels.dtype), labels.shape.size()));
  const TensorView rows = rows_of(labels, labels.host, false);
  return {reinterpret_cast<const std::int64_t*>(rows.data), rows.shape[0]};
}

void Batch::wait() const { lease().held().wait(); }
bool Batch::wait_ready(std::chrono::milliseconds timeout) const {
  const Lease& mine = lease();
  return !mine.lent || mine.lent->wait_ready(timeout);
}
void Batch::wait_on(StreamRef stream) const { lease().held().wait_on(stream); }
void Batch::remember(StreamRef stream) const { lease().held().remember(stream); }

void Batch::release() {
  if (!lease_ || !lease_->lent) return;
  const std::shared_ptr<LentSlot> lent = std::move(lease_->lent);
  lease_->lent.reset();
  if (lent.use_count() == 1) lent->give_back();  // else the last tensor does
}

}  // namespace shard
