#include "loader_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/checksum.hpp"
#include "loader_options.hpp"
#include "memory_plan.hpp"
#include "sample_errors.hpp"
#include "shard/error.hpp"
#include "timing.hpp"

namespace shard {

namespace {

template <class T>
std::shared_ptr<T> given(std::shared_ptr<T> pointer, const char* name) {
  if (!pointer) throw Error(ErrorCode::invalid_argument, fmt::format("the {} of a loader is null", name));
  return pointer;
}

[[noreturn]] void throw_cancelled() { throw Error(ErrorCode::cancelled, "the loader was cancelled"); }

}  // namespace

LoaderImpl::LoaderImpl(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Device> device,
                       LoaderOptions options)
    : dataset_(given(std::move(dataset), "data set")),
      device_(given(std::move(device), "device")),
      options_(check_loader_options(std::move(options))),
      order_(samples_of_shards(dataset_->info()), options_.order),
      order_digest_(order_.digest()),
      form_(make_stored_form(dataset_->info())),
      stored_(dataset_->info().spec),
      transform_(plan_transform(dataset_->info(), options_.transform)),
      delivered_(transform_.delivered),
      identity_(is_identity(dataset_->info(), options_.transform)),
      ring_(std::make_shared<Ring>(device_, options_.prefetch + 1)),
      retirement_{*ring_},
      pool_(std::make_unique<ThreadPool>(options_.threads)),
      copy_stream_(device_->create_stream()),
      compute_stream_(device_->create_stream()) {
  TransportContext context{dataset_, form_, device_, &options_, &order_, copy_stream_.get(), pool_.get()};
  context.stopping = [this] { return stopping(); };
  transport_ = make_transport(context, reason_);
  prepare_slots();
  if (options_.transport == TransportKind::resident) make_resident();
  try {
    feeder_ = std::thread([this] { feed(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource, fmt::format("cannot start a loader's thread: {}", error.what()));
  }
}

LoaderImpl::~LoaderImpl() {
  stop_epoch_ = true;
  ring_->stop();
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  feeder_.join();
}

bool LoaderImpl::made_by_another_process() const noexcept { return ring_->made_by_another_process(); }

bool LoaderImpl::inside(std::uint64_t epoch) const {
  require_same_process();
  std::lock_guard lock(mutex_);
  return started_ && !cancelled_ && !failed_ && epoch_ == epoch &&
         (consumed_ < order_.batches() || resumed_at_end_);
}

void LoaderImpl::require_same_process() const {
  if (made_by_another_process())
    throw Error(ErrorCode::unsupported,
                "this loader was made by another process: threads and device memory do not survive fork(); "
                "make the loader in the "
                "child, after the fork");
}

void LoaderImpl::require_ring() const {
  if (const std::exception_ptr failure = ring_->failure()) std::rethrow_exception(failure);
}

void LoaderImpl::make_resident() {
  const std::uint64_t samples = order_.samples_of_rank();
  const std::uint64_t sample = form_->most_bytes_to_device();
  const std::uint64_t free = options_.resident_bytes != 0 ? 0 : device_->free_memory_bytes();
  const ResidentMemory memory = resident_memory(dataset_->info(), options_, samples, free);
  resident_.emplace(*device_, memory.capacity_bytes);
  stats_.device_bytes += memory.capacity_bytes;
  const std::string part =
      form_->fixed_size() ? fmt::format("{} of {} samples", memory.capacity_bytes / sample, samples)
                          : fmt::format("{} of {} bytes of shards", memory.capacity_bytes, memory.all_bytes);
  reason_ = fmt::format("asked for; {} fit; the others come {}", part, to_string(transport_->kind()));
}

void LoaderImpl::prepare_slots() {
  const DatasetInfo& info = dataset_->info();
  shard_columns_.resize(info.shards.size());
  shard_placed_.resize(info.shards.size());
  const std::uint64_t batch = options_.order.batch_size;
  const SlotMemory memory = slot_memory(info, device_->info(), options_, transport_->kind());
  if (const std::uint64_t bytes = scratch_memory_bytes(info, device_->info(), options_); bytes > 0) {
    scratch_ = device_->allocate_device(bytes);
    stats_.device_bytes += bytes;
    transform_.unpacked = scratch_->data();
  }
  for (Slot& slot : ring_->slots()) {
    slot.images = device_->allocate_device(memory.images_bytes);
    if (memory.raw_bytes > 0) slot.raw = device_->allocate_device(memory.raw_bytes);
    if (memory.verdict_bytes > 0) slot.verdict = std::make_unique<Verdict>(dataset_, form_, *device_, batch);
    slot.columns_host = device_->allocate_pinned(memory.columns_bytes);
    slot.columns_device = device_->allocate_device(memory.columns_bytes);
    stats_.device_bytes += memory.images_bytes + memory.raw_bytes + memory.columns_bytes;
    columns_pinned_bytes_ += memory.columns_bytes + memory.verdict_bytes;
    auto offset = memory.columns_offsets.begin();
    const auto place = [&](const std::string& name, DType dtype) {
      const std::uint64_t at = *offset++;
      return ColumnView{
          name, dtype, {batch}, slot.columns_host->data() + at, slot.columns_device->data() + at};
    };
    for (const ColumnSpec& column : info.columns) {
      ColumnView view = place(column.name, column.dtype);
      view.shape.insert(view.shape.end(), column.row_shape.begin(), column.row_shape.end());
      slot.columns.push_back(std::move(view));
    }
    slot.ids = place("ids", DType::i64);
    slot.mask = place("mask", DType::boolean);
    slot.columns_copy = {slot.columns_device->data(), slot.columns_host->data(), memory.columns_bytes};
    transport_->prepare(slot);
  }
  stats_.pinned_bytes =
      columns_pinned_bytes_ + transport_->use().pinned_bytes;  // later, use() is the feeder's
}

void LoaderImpl::start_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  require_same_process();
  require_ring();
  std::unique_lock lock(mutex_);
  if (go_on_to(epoch, first_batch)) return;
  cancelled_ = false;
  begin_epoch(lock, epoch, first_batch);
}

// A cancel() that comes while it waits for the feeder stays: nothing is begun then.
void LoaderImpl::begin_epoch(std::unique_lock<std::mutex>& lock, std::uint64_t epoch,
                             std::uint64_t first_batch) {
  failed_ = nullptr;
  last_ = {};
  started_ = true;
  epoch_ = epoch;
  consumed_ = first_batch;
  resumed_at_end_ = false;
  stop_epoch_ = true;
  ring_->stop();  // a feeder that waits for a slot returns
  changed_.wait(lock, [&] { return idle_ && !request_; });
  if (cancelled_) return;
  ring_->drain();
  stop_epoch_ = false;
  failed_ = nullptr;  // what the feeder said meanwhile was of the epoch before
  if (!first_epoch_) first_epoch_ = epoch;
  if (first_batch < order_.batches()) {
    request_ = Request{epoch, first_batch};
  } else {
    ring_->push_end();
    request_ = Request{epoch + 1, 0};
  }
  changed_.notify_all();
}

// From the end of an epoch to the next one, which the feeder is at already. With the mutex held.
bool LoaderImpl::go_on_to(std::uint64_t epoch, std::uint64_t first_batch) {
  const bool next = started_ && !cancelled_ && !failed_ && epoch == epoch_ + 1 && first_batch == 0 &&
                    consumed_ == order_.batches();
  if (!next || !ring_->pass_end()) return false;
  epoch_ = epoch;
  consumed_ = 0;
  resumed_at_end_ = false;
  return true;
}

// Where the device decodes samples: the last word on a batch is known when it is on the device.
void LoaderImpl::check_last_batch() {
  if (last_.verdict == nullptr) return;
  try {
    last_.ready.wait();
    last_.copied.wait();
  } catch (const Error&) {
    rethrow_named(*dataset_);
  }
  try {
    last_.verdict->check(last_.batch);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = std::current_exception();
  }
}

Slot* LoaderImpl::next() {
  require_same_process();
  require_ring();
  const ProfilerRange range(*device_, "shard: next");
  check_last_batch();
  {
    std::unique_lock lock(mutex_);
    if (!started_ && !cancelled_) begin_epoch(lock, epoch_, consumed_);
    if (cancelled_) throw_cancelled();
    if (failed_) std::rethrow_exception(failed_);
  }
  const auto begin = Clock::now();
  Slot* slot = nullptr;
  const Ring::Pop popped = ring_->pop_ready(slot);
  std::lock_guard lock(mutex_);
  stats_.starved_seconds += seconds_since(begin);
  if (popped == Ring::Pop::failed) require_ring();
  if (popped == Ring::Pop::stopped || cancelled_) {
    if (slot != nullptr) ring_->give_back(slot, {slot->ready_event}, true);
    throw_cancelled();
  }
  if (popped == Ring::Pop::end) {
    resumed_at_end_ = false;
    return nullptr;
  }
  if (popped == Ring::Pop::all_lent)
    throw Error(ErrorCode::resource,
                fmt::format("all {} batches of the ring are held: release some, or raise prefetch",
                            ring_->slots().size()));
  if (slot->error) {
    failed_ = std::exchange(slot->error, nullptr);
    ring_->give_back(slot, std::move(slot->released), true);
    std::rethrow_exception(failed_);
  }
  if (slot->verdict)
    last_ = {slot->verdict.get(), slot->verdict->batch(), slot->copied_event, slot->ready_event};
  ++consumed_;
  ++stats_.batches;
  stats_.samples +=
      static_cast<std::uint64_t>(std::count(slot->handed_out.mask.begin(), slot->handed_out.mask.end(), 1));
  return slot;
}

bool LoaderImpl::wait_ready(std::chrono::milliseconds timeout) {
  require_same_process();
  {
    std::unique_lock lock(mutex_);
    if (!started_ && !cancelled_ && !ring_->failure()) begin_epoch(lock, epoch_, consumed_);
    if (failed_ || cancelled_ || ring_->failure()) return true;
  }
  const auto begin = Clock::now();
  const bool ready = ring_->wait_ready(timeout);
  std::lock_guard lock(mutex_);
  stats_.starved_seconds += seconds_since(begin);
  return ready;
}

void LoaderImpl::cancel() noexcept {
  if (made_by_another_process()) return;
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  stop_epoch_ = true;
  ring_->stop();
}

LoaderState LoaderImpl::state() const {
  require_same_process();
  std::lock_guard lock(mutex_);
  const OrderOptions& order = options_.order;
  const std::uint64_t global = order.batch_size * order.world;
  return {order.seed, epoch_,      consumed_ * global, dataset_->size(),
          global,     order.world, order_digest_,      from_hex(dataset_->info().fingerprint).value_or(0)};
}

void LoaderImpl::resume(const LoaderState& state) {
  const LoaderState mine = this->state();
  auto refuse = [](const char* what, std::uint64_t theirs, std::uint64_t ours) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: the state has {} {}, this loader {}", what, theirs, ours));
  };
  if (state.samples != mine.samples) refuse("a data set of samples:", state.samples, mine.samples);
  if (state.fingerprint != mine.fingerprint)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("cannot resume: the state is of a data set with the fingerprint {}, this loader's has {}",
                    to_hex(state.fingerprint), to_hex(mine.fingerprint)));
  if (state.order != mine.order)
    throw Error(ErrorCode::invalid_argument,
                "cannot resume: the state is of another order: mode, window, tail or partition differ (or "
                "the sizes of the shards, on which "
                "windowed and by_shard depend); use the options of the run that wrote it");
  if (state.seed != mine.seed) refuse("seed", state.seed, mine.seed);
  if (state.global_batch != mine.global_batch)
    refuse("global batch size", state.global_batch, mine.global_batch);
  if (options_.order.partition == Partition::by_shard && state.world != mine.world)
    refuse("world size (by_shard)", state.world, mine.world);
  if (state.position % state.global_batch != 0 || state.position / state.global_batch > order_.batches())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: position {} is not at a batch of the epoch", state.position));
  const std::uint64_t first_batch = state.position / state.global_batch;
  start_epoch(state.epoch, first_batch);
  std::lock_guard lock(mutex_);
  resumed_at_end_ = first_batch == order_.batches();
}

LoaderStats LoaderImpl::stats() const {
  require_same_process();
  std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  stats.transport = resident_ ? TransportKind::resident : transport_->kind();
  stats.reason = reason_;
  if (const std::string remark = transport_->remark(); !remark.empty()) stats.reason += "; " + remark;
  stats.consumer_seconds = static_cast<double>(consumer_wait_nanoseconds_) * 1e-9;
  return stats;
}

}  // namespace shard
