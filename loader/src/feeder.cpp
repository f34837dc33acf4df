// The feeder thread of a loader: it begins and ends batches, slot by slot.
#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <utility>

#include "base/guarded_read.hpp"
#include "base/thread_name.hpp"
#include "loader_impl.hpp"
#include "sample_errors.hpp"
#include "shard/error.hpp"
#include "timing.hpp"

namespace shard {

namespace {

constexpr std::chrono::milliseconds kTurn{20};    // between looks at whether to stop
constexpr std::chrono::microseconds kGlance{50};  // for a free slot, while the host's threads are at a batch

}  // namespace

void LoaderImpl::feed() {
  name_thread("shard-feed");
  std::exception_ptr refused;
  try {
    device_->enter_thread();
  } catch (...) {  // the device was lost since the loader was made
    refused = std::current_exception();
  }
  if (refused) ring_->lost(refused);
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
      if (Slot* slot = transport_->has_room() ? ring_->try_acquire() : nullptr)
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
  } catch (const UnreadablePage&) {
    // Of the batch that was in the slot before: whoever waited for its bytes was told.
  } catch (const Error&) {
    rethrow_named(*dataset_);
  }
  link_wait_seconds_ += seconds_since(wait_begin);
  order_.batch(epoch, index, slot.indices);
  slot.locations.clear();
  for (std::uint64_t sample : slot.indices.samples) slot.locations.push_back(dataset_->locate(sample));
  if (slot.verdict) slot.verdict->start_batch(slot.locations);
  draw_views(slot);
  open_shards(slot);
  place_samples(slot);
  if (slot.fetch.empty())
    transport_->skip(slot);
  else
    transport_->begin(slot);
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
    if (shard_columns_[at.shard].empty()) fresh.push_back(at.shard);
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  if (fresh.size() < 2) return;  // or when it is used
  try {
    run_rows(*pool_, fresh.size(), [&](std::size_t i) { static_cast<void>(dataset_->shard(fresh[i])); });
  } catch (const Error&) {  // is said where the shard is used, in the order of the samples
  }
}

void LoaderImpl::gather_columns(Slot& slot) {
  const BatchIndices& indices = slot.handed_out;
  const std::uint64_t rows = indices.samples.size();
  for (ColumnView& view : slot.columns) view.shape[0] = rows;
  slot.ids.shape[0] = slot.mask.shape[0] = rows;
  static_assert(sizeof(std::int64_t) == sizeof(indices.samples[0]));  // and indices are below 2^63
  std::copy_n(indices.samples.data(), rows,
              reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(slot.ids.host)));
  std::copy_n(indices.mask.data(), rows,
              reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(slot.mask.host)));
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    const Dataset::Location at = slot.locations[i];
    std::vector<const Column*>& columns = shard_columns_[at.shard];
    if (columns.empty())
      for (const ColumnView& view : slot.columns)
        columns.push_back(&dataset_->shard(at.shard).columns().at(view.name));
    const ShardReader& shard = dataset_->shard(at.shard);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::uint64_t size = columns[c]->row_bytes;
      std::byte* const row = const_cast<std::byte*>(slot.columns[c].host) + i * size;
      shard.read_rows(*columns[c], at.sample, {row, static_cast<std::size_t>(size)});
    }
  }
}

// Decides for each sample where it is brought to, or that it is on the device already.
void LoaderImpl::place_samples(Slot& slot) {
  slot.fetch.clear();
  slot.device_sources.clear();
  slot.sizes.clear();
  ++placed_;
  std::byte* base = identity_ ? slot.images->data() : (slot.raw ? slot.raw->data() : nullptr);
  std::uint64_t fetched = 0;
  for (std::size_t i = 0; i < slot.indices.samples.size(); ++i) {
    const std::uint64_t sample = slot.indices.samples[i];
    const auto [size, mapped] = form_->locate(*dataset_, slot.locations[i]);
    std::byte* const target = base;
    if (base != nullptr) base += size;
    const std::byte* there = resident_ ? resident_->find(sample) : nullptr;
    if (there == nullptr) {
      std::uint64_t& last_placed = shard_placed_[slot.locations[i].shard];
      FetchItem item{sample, slot.locations[i], target, size, fetched, last_placed != placed_};
      item.mapped = mapped;
      last_placed = placed_;
      if (resident_)
        if (std::byte* const place = resident_->add(sample, size)) item.target = place;
      there = item.target;
      slot.fetch.push_back(item);
      fetched += size;
    }
    slot.device_sources.push_back(there);
    slot.sizes.push_back(size);
  }
}

// Copies into the slot may stand behind the consumer's work on its last batch, which may never end.
void LoaderImpl::wait_copied(const Slot& slot) {
  try {
    while (!slot.copied_event.wait_for(kTurn))
      if (stopping()) throw Error(ErrorCode::cancelled, "stopped while samples are copied");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    rethrow_named(*dataset_);
  }
}

// What the consumer reads on the host, or from there by copies and kernels of its own: its work on the slot's
// last batch must have ended, and not only be ordered before the device's.
void LoaderImpl::hand_over(Slot& slot) {
  const auto begin = Clock::now();
  for (const Event& event : slot.released) {
    try {
      while (!event.wait_for(kTurn))
        if (stopping()) {
          slot.fetch.clear();  // its samples are on their way, also to stay on the device
          throw Error(ErrorCode::cancelled, "stopped while a consumer still reads the slot");
        }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;  // else: the consumer's work failed, and is over
    }
  }
  const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  {
    std::lock_guard lock(mutex_);
    consumer_wait_nanoseconds_ += static_cast<std::uint64_t>(waited);
  }
  std::swap(slot.handed_out, slot.indices);
  gather_columns(slot);
}

void LoaderImpl::end(Slot& slot) {
  const ProfilerRange range(*device_, "shard: end batch");
  if (!slot.fetch.empty()) {
    transport_->end(slot);
    // Reads of the host device may fail: what stays for later batches must have been read.
    if (resident_ && device_->info().kind == DeviceKind::host) wait_copied(slot);
  } else {
    slot.copied_event = Event();
  }
  hand_over(slot);
  for (const Event& event : slot.released) compute_stream_->wait(event);  // over: mostly nothing to be queued
  compute_stream_->upload(slot.columns_copy);  // beside the copies of this and later batches
  compute_stream_->wait(slot.copied_event);
  if (!identity_) {
    transform_.sources = transport_->sources(slot);
    if (slot.raw || resident_) transform_.sources = slot.device_sources;
    transform_.views = slot.views;
    transform_.target = slot.images->data();
    form_->describe(transform_, slot.sizes);
    if (slot.verdict) transform_.broken = slot.verdict->entries();
    compute_stream_->transform(transform_);
  } else if (resident_) {
    const std::uint64_t size = stored_.size_bytes();
    gathered_.clear();
    for (std::size_t i = 0; i < slot.device_sources.size(); ++i) {
      std::byte* const row = slot.images->data() + i * size;
      if (slot.device_sources[i] != row) gathered_.push_back({row, slot.device_sources[i], size});
    }
    compute_stream_->gather(gathered_);
  }
  slot.ready_event = compute_stream_->record();
  const TransportUse use = transport_->use();
  std::lock_guard lock(mutex_);
  stats_.bytes += std::accumulate(slot.sizes.begin(), slot.sizes.end(), std::uint64_t{0});
  stats_.link_seconds = link_wait_seconds_;
  stats_.storage_seconds = use.storage_seconds;
  stats_.registered_bytes = use.registered_bytes;
  stats_.pinned_bytes = columns_pinned_bytes_ + use.pinned_bytes;
}

}  // namespace shard
