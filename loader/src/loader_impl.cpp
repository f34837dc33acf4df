#include "loader_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <numeric>
#include <system_error>
#include <utility>

#include "shard/error.hpp"

namespace shard {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kColumnAlign = 256;
constexpr std::chrono::microseconds kGlance{50};  // for a free slot, while the host's threads are at a batch

// What the loader does, on a profiler's time line.
class ProfilerRange {
 public:
  ProfilerRange(Device& device, const char* name) : device_(device) { device_.begin_range(name); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange() { device_.end_range(); }

 private:
  Device& device_;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

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

template <class T>
std::shared_ptr<T> given(std::shared_ptr<T> pointer, const char* name) {
  if (!pointer) throw Error(ErrorCode::invalid_argument, fmt::format("the {} of a loader is null", name));
  return pointer;
}

unsigned default_threads() { return std::clamp(std::thread::hardware_concurrency(), 1U, 8U); }

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
      stored_(dataset_->info().spec),
      delivered_(check_transform(stored_, options_.transform)),
      packed_(dataset_->info().codec.kind == Codec::Kind::packed),
      identity_(!packed_ && is_identity(stored_, options_.transform)),
      ring_(std::make_shared<Ring>(device_, options_.prefetch + 1)),
      pool_(std::make_unique<HostPool>(options_.threads)),
      copy_stream_(device_->create_stream()),
      compute_stream_(device_->create_stream()) {
  transform_.stored = stored_;
  transform_.delivered = delivered_;
  transform_.normalization = options_.transform.normalization.value_or(dataset_->info().normalization);
  if (packed_) transform_.stored.dtype = DType::u8;  // frames hold the bytes that floats were made of
  transform_.normalize = transform_.stored.dtype == DType::u8 && delivered_.dtype != DType::u8;
  transport_ = make_transport({dataset_, device_, &options_, &order_, copy_stream_.get(), pool_.get(),
                               most_bytes_to_device(dataset_->info())},
                              reason_);
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

void LoaderImpl::make_resident() {
  const std::uint64_t budget =
      options_.resident_bytes != 0 ? options_.resident_bytes : device_->free_memory_bytes() / 10 * 9;
  const std::uint64_t sample = most_bytes_to_device(dataset_->info());
  if (budget < sample)
    throw Error(
        ErrorCode::resource,
        fmt::format("resident_bytes is {}: not even one sample of {} bytes stays on the device; raise it, or "
                    "use another transport",
                    budget, sample));
  std::uint64_t all = dataset_->size() * sample;
  std::uint64_t capacity = std::min(all, budget / sample * sample);
  if (packed_) {
    all = 0;
    for (const ShardSummary& shard : dataset_->info().shards) all += shard.size_bytes;  // mostly frames
    capacity = std::min(all, budget);
  }
  resident_.emplace(*device_, dataset_->size(), capacity);
  const std::string part = packed_ ? fmt::format("{} of {} bytes of shards", capacity, all)
                                   : fmt::format("{} of {} samples", capacity / sample, dataset_->size());
  reason_ = fmt::format("asked for; {} fit; the others come {}", part, to_string(transport_->kind()));
}

void LoaderImpl::prepare_slots() {
  shard_columns_.resize(dataset_->info().shards.size());
  opened_.resize(dataset_->info().shards.size());
  const std::uint64_t batch = options_.order.batch_size;
  const bool raw =
      !identity_ && !(transport_->reads_in_place() && options_.transport != TransportKind::resident);
  std::uint64_t columns_bytes = 0;
  for (const ColumnSpec& column : dataset_->info().columns)
    columns_bytes += (row_bytes(column) * batch + kColumnAlign - 1) / kColumnAlign * kColumnAlign;
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
    for (const ColumnSpec& column : dataset_->info().columns) {
      ColumnView view{column.name,
                      column.dtype,
                      {batch},
                      slot.columns_host->data() + at,
                      slot.columns_device->data() + at};
      view.shape.insert(view.shape.end(), column.row_shape.begin(), column.row_shape.end());
      slot.columns.push_back(std::move(view));
      at += (row_bytes(column) * batch + kColumnAlign - 1) / kColumnAlign * kColumnAlign;
    }
    slot.columns_copy = {slot.columns_device->data(), slot.columns_host->data(), columns_bytes};
    transport_->prepare(slot);
  }
  stats_.pinned_bytes =
      columns_pinned_bytes_ + transport_->use().pinned_bytes;  // later, use() is the feeder's
}

void LoaderImpl::feed() {
  for (;;) {
    Request request;
    {
      std::unique_lock lock(mutex_);
      idle_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return quit_ || request_; });
      if (quit_) return;
      request = *request_;
      request_.reset();
      idle_ = false;
    }
    // The epoch behind it is most likely asked for next: it begins without a gap.
    for (bool more = feed_epoch(request.epoch, request.first_batch); more;)
      more = feed_epoch(++request.epoch, 0);
  }
}

// The batch could not be made: what it was to bring to the device is not there.
void LoaderImpl::fail(Slot& slot, std::exception_ptr error) {
  slot.error = std::move(error);
  if (resident_)
    for (const FetchItem& item : slot.fetch) resident_->forget(item.sample);
}

// Keeps as many batches begun as the transport wants, so that host work and reads of several overlap. False:
// it was stopped, or a batch failed.
bool LoaderImpl::feed_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  const std::uint64_t batches = order_.batches();
  const std::size_t most = std::min(transport_->depth(), ring_->slots().size());
  std::size_t depth = std::exchange(warm_, true) ? most : 1;  // the very first batch comes before any other
  std::uint64_t next = first_batch;
  bool failed = false;
  std::deque<Slot*> begun;
  auto start = [&](Slot* slot) {
    begun.push_back(slot);
    try {
      begin(*slot, epoch, next);
      ++next;
    } catch (...) {
      fail(*slot, std::current_exception());
      failed = true;
      next = batches;
    }
  };
  while (!begun.empty() || (next < batches && !stopping())) {
    if (begun.empty()) {
      Slot* slot = acquire();
      if (slot == nullptr) return false;
      start(slot);
    }
    while (begun.size() < depth && next < batches && !stopping()) {
      // A batch that can be handed on is not held up by one whose slot is in flight; while the host is still
      // at it, its threads get more to do as soon as there is a slot.
      if (Slot* slot = ring_->try_acquire())
        start(slot);
      else if (begun.front()->error || transport_->wait(*begun.front(), kGlance))
        break;
    }
    Slot* const slot = begun.front();
    begun.pop_front();
    if (!slot->error) {
      try {
        end(*slot);
      } catch (...) {
        fail(*slot, std::current_exception());
        failed = true;
        next = batches;
      }
    }
    ring_->push_ready(slot, begun.empty() && next >= batches);
    depth = most;
  }
  return !failed && !stopping();
}

Slot* LoaderImpl::acquire() {
  const ProfilerRange range(*device_, "shard: wait for a free batch");
  const auto begin = Clock::now();
  Slot* const slot = ring_->acquire();
  const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  std::lock_guard lock(mutex_);
  consumer_wait_nanoseconds_ += static_cast<std::uint64_t>(waited);
  return slot;
}

void LoaderImpl::begin(Slot& slot, std::uint64_t epoch, std::uint64_t index) {
  const ProfilerRange range(*device_, "shard: begin batch");
  slot.error = nullptr;
  slot.fetch.clear();
  slot.epoch = epoch;
  slot.index = index;
  slot.verify =
      options_.verify == Verify::always || (options_.verify == Verify::first_epoch && first_epoch_ == epoch);
  const auto wait_begin = Clock::now();
  try {
    slot.ready_event.wait();  // host memory of the slot's last use is read until then
  } catch (const Error&) {
    check_all_alive(*dataset_);
    throw;
  }
  link_wait_seconds_ += seconds_since(wait_begin);
  reuse(slot);
  order_.batch(epoch, index, slot.indices);
  slot.locations.clear();
  for (std::uint64_t sample : slot.indices.samples) slot.locations.push_back(dataset_->locate(sample));
  draw_views(slot);
  open_shards(slot);
  gather_columns(slot);
  place_samples(slot);
  if (slot.fetch.empty())
    transport_->skip(slot);
  else
    transport_->begin(slot);
}

// What the device said of the frames of the slot's last batch, before it is forgotten.
void LoaderImpl::reuse(Slot& slot) {
  const std::uint64_t serial = ++serial_;
  if (!packed_) return;
  std::exception_ptr error;
  bool handed_out = false;
  {
    std::lock_guard lock(mutex_);
    handed_out = last_.slot == &slot && last_.serial == slot.serial;
  }
  if (handed_out) {
    try {
      check_frames(*dataset_, slot);
    } catch (...) {
      error = std::current_exception();
    }
  }
  std::lock_guard lock(mutex_);
  if (error && !failed_) failed_ = error;
  slot.serial = serial;
  std::memset(slot.broken->data(), 0, slot.broken->size_bytes());
}

// Codec packed: the batch before this one, unless its slot was used again: then it has been checked. The last
// word on a batch is known when it is on the device.
void LoaderImpl::check_last_batch() {
  if (!packed_ || last_.slot == nullptr) return;
  try {
    last_.ready.wait();
  } catch (const Error&) {
    check_all_alive(*dataset_);
    throw;
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

void LoaderImpl::draw_views(Slot& slot) const {
  const TransformOptions& transform = options_.transform;
  if (identity_) return;
  const bool drawn = transform.flip_probability > 0 || transform.crop == CropKind::random ||
                     transform.crop == CropKind::random_resized;
  if (!drawn && slot.views.size() == slot.indices.samples.size()) return;  // the same for every batch
  slot.views.clear();
  for (std::uint64_t sample : slot.indices.samples)
    slot.views.push_back(draw_view(stored_, transform, options_.order.seed, slot.epoch, sample));
}

// Shards that no batch touched yet, side by side: a first shuffled batch touches hundreds.
void LoaderImpl::open_shards(const Slot& slot) {
  std::vector<std::uint32_t> fresh;
  for (const Dataset::Location at : slot.locations)
    if (!opened_[at.shard]) {
      opened_[at.shard] = true;
      fresh.push_back(at.shard);
    }
  if (fresh.size() < 2) return;  // or when it is used
  try {
    run_rows(*pool_, fresh.size(), [&](std::size_t i) { static_cast<void>(dataset_->shard(fresh[i])); });
  } catch (const Error&) {  // is said where the shard is used, in the order of the samples
  }
}

void LoaderImpl::gather_columns(Slot& slot) {
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    const Dataset::Location at = slot.locations[i];
    std::vector<const Column*>& columns = shard_columns_[at.shard];
    if (columns.empty())
      for (const ColumnView& view : slot.columns)
        columns.push_back(&dataset_->shard(at.shard).columns().at(view.name));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::uint64_t size = columns[c]->row_bytes;
      std::memcpy(const_cast<std::byte*>(slot.columns[c].host) + i * size,
                  columns[c]->bytes.data() + at.sample * size, size);
    }
  }
}

std::uint64_t LoaderImpl::bytes_to_device(const Dataset::Location& at) const {
  if (!packed_) return stored_.size_bytes();
  const ShardReader& shard = dataset_->shard(at.shard);
  const std::uint64_t size = shard.frame(at.sample).size();
  if (size > most_bytes_to_device(dataset_->info()))
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: sample {} ('{}'): a packed frame of {} bytes; a sample takes at most {}",
                            shard.path().string(), at.sample, shard.key(at.sample), size,
                            most_bytes_to_device(dataset_->info())));
  return size;
}

// Decides for each sample where it is brought to, or that it is on the device already.
void LoaderImpl::place_samples(Slot& slot) {
  slot.fetch.clear();
  slot.device_sources.clear();
  slot.frame_bytes.clear();
  std::byte* base = identity_ ? slot.images->data() : (slot.raw ? slot.raw->data() : nullptr);
  std::uint64_t fetched = 0;
  for (std::size_t i = 0; i < slot.indices.samples.size(); ++i) {
    const std::uint64_t sample = slot.indices.samples[i];
    const std::uint64_t size = bytes_to_device(slot.locations[i]);
    std::byte* const target = base;
    if (base != nullptr) base += size;
    const std::byte* there = resident_ ? resident_->find(sample) : nullptr;
    if (there == nullptr) {
      FetchItem item{sample, slot.locations[i], target, size, fetched};
      if (resident_)
        if (std::byte* const place = resident_->add(sample, size)) item.target = place;
      there = item.target;
      slot.fetch.push_back(item);
      fetched += size;
    }
    slot.device_sources.push_back(there);
    if (packed_) slot.frame_bytes.push_back(size);
  }
}

void LoaderImpl::end(Slot& slot) {
  const ProfilerRange range(*device_, "shard: end batch");
  if (!slot.fetch.empty()) {
    transport_->end(slot);
  } else {
    slot.copied_event = Event();
  }
  compute_stream_->wait(slot.released_event);
  compute_stream_->upload(slot.columns_copy);  // beside the copies of this and later batches
  compute_stream_->wait(slot.copied_event);
  if (!identity_) {
    transform_.sources = slot.raw || resident_ ? slot.device_sources : slot.sources;
    transform_.views = slot.views;
    transform_.target = slot.images->data();
    transform_.frame_bytes = slot.frame_bytes;
    if (packed_) transform_.broken = reinterpret_cast<std::uint32_t*>(slot.broken->data());
    compute_stream_->transform(transform_);
  } else if (resident_) {
    const std::uint64_t size = stored_.size_bytes();
    slot.copies.clear();
    for (std::size_t i = 0; i < slot.device_sources.size(); ++i) {
      std::byte* const row = slot.images->data() + i * size;
      if (slot.device_sources[i] != row) slot.copies.push_back({row, slot.device_sources[i], size});
    }
    compute_stream_->gather(slot.copies);
  }
  slot.ready_event = compute_stream_->record();
  const TransportUse use = transport_->use();
  std::lock_guard lock(mutex_);
  stats_.bytes += std::accumulate(slot.frame_bytes.begin(), slot.frame_bytes.end(),
                                  packed_ ? 0 : slot.indices.samples.size() * stored_.size_bytes());
  stats_.link_seconds = link_wait_seconds_;
  stats_.storage_seconds = static_cast<double>(use.storage_nanoseconds) * 1e-9;
  stats_.registered_bytes = use.registered_bytes;
  stats_.pinned_bytes = columns_pinned_bytes_ + use.pinned_bytes;
}

void LoaderImpl::start_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  require_same_process();
  if (go_on_to(epoch, first_batch)) return;
  stop_epoch_ = true;
  ring_->stop();  // a feeder that waits for a slot returns
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return idle_ && !request_; });
  ring_->drain();
  stop_epoch_ = false;
  cancelled_ = false;
  failed_ = nullptr;
  last_ = {};
  started_ = true;
  epoch_ = epoch;
  consumed_ = first_batch;
  resumed_at_end_ = false;
  if (!first_epoch_) first_epoch_ = epoch;
  if (first_batch < order_.batches()) {
    request_ = Request{epoch, first_batch};
  } else {
    ring_->push_end();
    request_ = Request{epoch + 1, 0};
  }
  changed_.notify_all();
}

// From the end of an epoch to the next one, which the feeder is at already.
bool LoaderImpl::go_on_to(std::uint64_t epoch, std::uint64_t first_batch) {
  std::lock_guard lock(mutex_);
  const bool next = started_ && !cancelled_ && !failed_ && epoch == epoch_ + 1 && first_batch == 0 &&
                    consumed_ == order_.batches();
  if (!next || !ring_->pass_end()) return false;
  epoch_ = epoch;
  consumed_ = 0;
  resumed_at_end_ = false;
  return true;
}

Slot* LoaderImpl::next() {
  require_same_process();
  const ProfilerRange range(*device_, "shard: next");
  check_last_batch();
  bool started = false;
  {
    std::lock_guard lock(mutex_);
    started = started_;
    if (failed_ && !cancelled_) std::rethrow_exception(failed_);
  }
  if (!started) start_epoch(epoch_, consumed_);
  const auto begin = Clock::now();
  Slot* slot = nullptr;
  const Ring::Pop popped = ring_->pop_ready(slot);
  std::lock_guard lock(mutex_);
  stats_.starved_seconds += seconds_since(begin);
  if (popped == Ring::Pop::stopped || cancelled_) {
    if (slot != nullptr) ring_->give_back(slot, slot->ready_event, true);
    throw Error(ErrorCode::cancelled, "the loader was cancelled");
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
    ring_->give_back(slot, {}, true);
    std::rethrow_exception(failed_);
  }
  last_ = {slot, slot->serial, slot->ready_event};
  ++consumed_;
  ++stats_.batches;
  stats_.samples +=
      static_cast<std::uint64_t>(std::count(slot->indices.mask.begin(), slot->indices.mask.end(), 1));
  return slot;
}

bool LoaderImpl::wait_ready(std::chrono::milliseconds timeout) {
  require_same_process();
  bool started = false;
  {
    std::lock_guard lock(mutex_);
    started = started_;
    if (failed_ || cancelled_) return true;
  }
  if (!started) start_epoch(epoch_, consumed_);
  const auto begin = Clock::now();
  const bool ready = ring_->wait_ready(timeout);
  std::lock_guard lock(mutex_);
  stats_.starved_seconds += seconds_since(begin);
  return ready;
}

void LoaderImpl::cancel() noexcept {
  if (made_by_another_process()) return;
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  stop_epoch_ = true;
  ring_->stop();
}

LoaderState LoaderImpl::state() const {
  require_same_process();
  std::lock_guard lock(mutex_);
  const OrderOptions& order = options_.order;
  const std::uint64_t global = order.batch_size * order.world;
  return {order.seed, epoch_, consumed_ * global, dataset_->size(), global, order.world};
}

void LoaderImpl::resume(const LoaderState& state) {
  const LoaderState mine = this->state();
  auto refuse = [](const char* what, std::uint64_t theirs, std::uint64_t ours) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: the state has {} {}, this loader {}", what, theirs, ours));
  };
  if (state.samples != mine.samples) refuse("a data set of samples:", state.samples, mine.samples);
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
