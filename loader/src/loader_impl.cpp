#include "loader_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/checksum.hpp"
#include "base/cpu_count.hpp"
#include "shard/error.hpp"
#include "timing.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kColumnAlign = 256;

std::vector<std::uint64_t> shard_samples(const Dataset& dataset) {
  std::vector<std::uint64_t> samples;
  for (const ShardSummary& shard : dataset.info().shards) samples.push_back(shard.samples);
  return samples;
}

std::uint64_t row_bytes(const ColumnSpec& column) {
  std::uint64_t bytes = size_bytes(column.dtype);
  for (std::uint64_t extent : column.row_shape) bytes *= extent;
  return bytes;
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kColumnAlign - 1) / kColumnAlign * kColumnAlign;
}

template <class T>
std::shared_ptr<T> given(std::shared_ptr<T> pointer, const char* name) {
  if (!pointer) throw Error(ErrorCode::invalid_argument, fmt::format("the {} of a loader is null", name));
  return pointer;
}

[[noreturn]] void throw_cancelled() { throw Error(ErrorCode::cancelled, "the loader was cancelled"); }

unsigned default_threads() { return std::min(cpu_count(), 8U); }

LoaderOptions checked(LoaderOptions options) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  if (options.transport > TransportKind::resident)
    refuse(fmt::format("transport is {}; it must be automatic (0), mapped, staged, direct or resident (4)",
                       static_cast<int>(options.transport)));
  if (options.verify > Verify::always)
    refuse(fmt::format("verify is {}; it must be never (0), first_epoch or always (2)",
                       static_cast<int>(options.verify)));
  if (options.prefetch < 1 || options.prefetch > 64)
    refuse(fmt::format("prefetch is {}; it must be 1 to 64", options.prefetch));
  if (options.threads > 256)
    refuse(fmt::format("threads is {}; it must be 0 (as many as cores, up to 8) to 256", options.threads));
  if (options.threads == 0) options.threads = default_threads();
  return options;
}

}  // namespace

LoaderImpl::LoaderImpl(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Device> device,
                       LoaderOptions options)
    : dataset_(given(std::move(dataset), "data set")),
      device_(given(std::move(device), "device")),
      options_(checked(std::move(options))),
      order_(shard_samples(*dataset_), options_.order),
      order_digest_(order_.digest()),
      stored_(dataset_->info().spec),
      transform_(plan_transform(dataset_->info(), options_.transform)),
      delivered_(transform_.delivered),
      packed_(dataset_->info().codec.kind == Codec::Kind::packed),
      identity_(is_identity(dataset_->info(), options_.transform)),
      ring_(std::make_shared<Ring>(device_, options_.prefetch + 1)),
      retirement_{*ring_},
      pool_(std::make_unique<HostPool>(options_.threads)),
      copy_stream_(device_->create_stream()),
      compute_stream_(device_->create_stream()) {
  TransportContext context{dataset_, device_, &options_, &order_, copy_stream_.get(), pool_.get()};
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
  // The other half is left to what is allocated later: models, and other processes.
  const std::uint64_t budget =
      options_.resident_bytes != 0 ? options_.resident_bytes : device_->free_memory_bytes() / 2;
  const std::uint64_t samples = order_.samples_of_rank();
  const std::uint64_t sample = most_bytes_to_device(dataset_->info());
  if (budget < sample)
    throw Error(
        ErrorCode::resource,
        fmt::format("resident_bytes is {}: not even one sample of {} bytes stays on the device; raise it, or "
                    "use another transport",
                    budget, sample));
  std::uint64_t all = samples * sample;
  std::uint64_t capacity = std::min(all, budget / sample * sample);
  if (packed_) {
    std::uint64_t shards = 0;
    for (const ShardSummary& shard : dataset_->info().shards) shards += shard.size_bytes;  // mostly frames
    all = std::min(all, shards);
    capacity = std::min(all, budget);
  }
  resident_.emplace(*device_, capacity);
  const std::string part = packed_ ? fmt::format("{} of {} bytes of shards", capacity, all)
                                   : fmt::format("{} of {} samples", capacity / sample, samples);
  reason_ = fmt::format("asked for; {} fit; the others come {}", part, to_string(transport_->kind()));
}

void LoaderImpl::prepare_slots() {
  shard_columns_.resize(dataset_->info().shards.size());
  shard_placed_.resize(dataset_->info().shards.size());
  const std::uint64_t batch = options_.order.batch_size;
  const bool raw =
      !identity_ && !(transport_->reads_in_place() && options_.transport != TransportKind::resident);
  std::uint64_t columns_bytes = aligned(sizeof(std::int64_t) * batch) + aligned(batch);  // ids and mask
  for (const ColumnSpec& column : dataset_->info().columns)
    columns_bytes += aligned(row_bytes(column) * batch);
  if (packed_ && options_.transform.crop == CropKind::random_resized && !device_->info().reads_host_memory) {
    unpacked_ = device_->allocate_device(stored_.elements() * batch);
    stats_.device_bytes += unpacked_->size_bytes();
    transform_.unpacked = unpacked_->data();
  }
  for (Slot& slot : ring_->slots()) {
    slot.images = device_->allocate_device(delivered_.size_bytes() * batch);
    if (raw) slot.raw = device_->allocate_device(most_bytes_to_device(dataset_->info()) * batch);
    if (packed_) {
      slot.broken = device_->allocate_pinned(sizeof(std::uint32_t) * batch);
      std::memset(slot.broken->data(), 0, slot.broken->size_bytes());
      columns_pinned_bytes_ += slot.broken->size_bytes();
    }
    slot.columns_host = device_->allocate_pinned(columns_bytes);
    slot.columns_device = device_->allocate_device(columns_bytes);
    stats_.device_bytes += slot.images->size_bytes() + (raw ? slot.raw->size_bytes() : 0) + columns_bytes;
    columns_pinned_bytes_ += columns_bytes;
    std::uint64_t at = 0;
    const auto place = [&](const std::string& name, DType dtype, std::uint64_t bytes) {
      ColumnView view{name, dtype, {batch}, slot.columns_host->data() + at, slot.columns_device->data() + at};
      at += aligned(bytes * batch);
      return view;
    };
    for (const ColumnSpec& column : dataset_->info().columns) {
      ColumnView view = place(column.name, column.dtype, row_bytes(column));
      view.shape.insert(view.shape.end(), column.row_shape.begin(), column.row_shape.end());
      slot.columns.push_back(std::move(view));
    }
    slot.ids = place("ids", DType::i64, sizeof(std::int64_t));
    slot.mask = place("mask", DType::boolean, 1);
    slot.columns_copy = {slot.columns_device->data(), slot.columns_host->data(), columns_bytes};
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

// Codec packed: the batch before this one, unless its slot was used again: then it has been checked. The last
// word on a batch is known when it is on the device.
void LoaderImpl::check_last_batch() {
  if (!packed_ || last_.slot == nullptr) return;
  try {
    last_.ready.wait();
    last_.copied.wait();
  } catch (const Error&) {
    rethrow_named(*dataset_);
  }
  std::lock_guard lock(mutex_);
  if (!failed_ && last_.slot->serial == last_.serial) {
    try {
      check_frames(*dataset_, *last_.slot);
    } catch (...) {
      failed_ = std::current_exception();
    }
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
  last_ = {slot, slot->serial, slot->copied_event, slot->ready_event};
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
  stats.device_bytes += resident_ ? resident_->device_bytes() : 0;
  return stats;
}

}  // namespace shard
