#include "engine/loader_impl.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "codec/sample_errors.hpp"
#include "fields/view_text.hpp"
#include "fields/views.hpp"
#include "format/dataset/shard_store.hpp"
#include "shard/error.hpp"
#include "slot/profiler_range.hpp"

namespace shard {

namespace {

[[noreturn]] void throw_cancelled() { throw Error(ErrorCode::cancelled, "the loader was cancelled"); }

}  // namespace

LoaderWorks::LoaderWorks(std::shared_ptr<const LoaderSetup> of, std::optional<std::uint64_t> first_epoch)
    : setup(std::move(of)),
      ring(std::make_shared<Ring>(setup->device, std::size_t{setup->options.prefetch} + 1)),
      retirement{*ring},
      feeder(*setup, *ring, mailbox, first_epoch) {}

void LoaderWorks::stop() noexcept {
  mailbox.stop();
  ring->stop();  // a feeder that waits for a slot returns
}

Loader::Impl::Impl(Dataset dataset, std::shared_ptr<Device> device, LoaderOptions options)
    : process_(::getpid()),
      asked_(options),
      setup_(std::make_shared<LoaderSetup>(std::move(dataset), std::move(device), std::move(options))),
      works_(std::make_unique<LoaderWorks>(setup_, std::nullopt)),
      order_digest_(setup_->order.digest()),
      selection_digest_(setup_->dataset.selection_digest()) {}

bool Loader::Impl::made_by_another_process() const noexcept { return ::getpid() != process_; }

bool Loader::Impl::inside(std::uint64_t epoch) const {
  require_same_process();
  const std::lock_guard lock(mutex_);
  return epoch_ == epoch && (state_ == EpochState::running || state_ == EpochState::resumed_at_end);
}

void Loader::Impl::require_same_process() const {
  if (made_by_another_process())
    throw Error(ErrorCode::unsupported,
                "this loader was made by another process: threads and device memory do not survive fork(); "
                "make the loader in the "
                "child, after the fork");
}

void Loader::Impl::require_ring() const {
  if (!works_) return;
  if (const std::exception_ptr failure = works_->ring->failure()) std::rethrow_exception(failure);
}

void Loader::Impl::start_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  require_same_process();
  require_ring();
  std::unique_lock lock(mutex_);
  const bool at_end = state_ == EpochState::ended || state_ == EpochState::resumed_at_end;
  const bool same_views = works_ && works_->setup == setup_;
  if (at_end && same_views && epoch == epoch_ + 1 && first_batch == 0) {  // the feeder has started it already
    state_ = EpochState::running;
    epoch_ = epoch;
    handed_out_ = 0;
    return;
  }
  start(lock, epoch, first_batch);
}

// If cancel() is called while this waits for the feeder, the loader stays cancelled, and nothing is started.
void Loader::Impl::start(std::unique_lock<std::mutex>& lock, std::uint64_t epoch, std::uint64_t first_batch) {
  state_ = EpochState::starting;
  epoch_ = epoch;
  handed_out_ = first_batch;
  error_ = nullptr;
  last_ = {};
  if (!first_epoch_) first_epoch_ = epoch;
  if (works_ && works_->setup == setup_) {
    works_->stop();
    lock.unlock();
    works_->mailbox.wait_idle();
    lock.lock();
  } else {
    replace_works(lock);
  }
  if (state_ != EpochState::starting) return;
  works_->ring->drain();
  works_->mailbox.run({epoch, first_batch});
  state_ = first_batch < setup_->order.batches() ? EpochState::running : EpochState::resumed_at_end;
}

// The old ones are freed before the new ones are allocated, so that memory for both is not needed.
void Loader::Impl::replace_works(std::unique_lock<std::mutex>& lock) {
  std::unique_ptr<LoaderWorks> works = std::move(works_);
  if (works) stats_ += works->feeder.stats().counted();
  lock.unlock();
  works.reset();
  std::exception_ptr refused;
  try {
    works = std::make_unique<LoaderWorks>(setup_, first_epoch_);
  } catch (...) {
    refused = std::current_exception();
  }
  lock.lock();
  works_ = std::move(works);
  if (!refused) return;
  fail(refused);
  std::rethrow_exception(refused);
}

void Loader::Impl::set_views(std::vector<TransformOptions> views) {
  require_same_process();
  use(setup_with(std::move(views)));
}

void Loader::Impl::set_data(Dataset dataset) {
  require_same_process();
  auto setup = std::make_shared<const LoaderSetup>(std::move(dataset), setup_->device, asked_);
  if (setup->views_text != setup_->views_text)
    setup = std::make_shared<const LoaderSetup>(*setup, views_of(setup_->options));
  if (setup->dataset.size() != setup_->dataset.size() || setup->order.digest() != order_digest_ ||
      setup->dataset.selection_digest() != selection_digest_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has other samples than {}, or another order of them: make a new loader",
                            quoted(setup->dataset.path()), quoted(setup_->dataset.path())));
  use(std::move(setup));
}

void Loader::Impl::use(std::shared_ptr<const LoaderSetup> setup) {
  const std::lock_guard lock(mutex_);
  setup_ = std::move(setup);
}

// The one that works have or will have, if the views are the same: nothing is made again then.
std::shared_ptr<const LoaderSetup> Loader::Impl::setup_with(std::vector<TransformOptions> views) const {
  const auto setup = std::make_shared<const LoaderSetup>(*setup_, std::move(views));
  if (works_ && works_->setup->views_text == setup->views_text) return works_->setup;
  return setup_->views_text == setup->views_text ? setup_ : setup;
}

// What wait() of a batch threw is thrown by next() too. If the device decodes samples, it is known only when
// a batch is on the device whether its samples are valid.
void Loader::Impl::check_last_batch() {
  if (works_) {
    if (std::exception_ptr spoiled = works_->ring->spoiled_by()) {
      const std::lock_guard lock(mutex_);
      fail(std::move(spoiled));
      return;
    }
  }
  if (last_.verdict == nullptr) return;
  try {
    last_.ready.wait();
    last_.copied.wait();
  } catch (const Error&) {
    rethrow_named(setup_->dataset);
  }
  try {
    last_.verdict->check(last_.batch, last_.first, last_.end);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    fail(std::current_exception());
  }
}

// With the mutex held. The first error stays, and so does a cancel().
void Loader::Impl::fail(std::exception_ptr error) {
  if (state_ == EpochState::failed || state_ == EpochState::cancelled) return;
  state_ = EpochState::failed;
  error_ = std::move(error);
}

Loader::Impl::Part Loader::Impl::next() {
  require_same_process();
  require_ring();
  const ProfilerRange range(*setup_->device, "shard: next");
  check_last_batch();
  {
    std::unique_lock lock(mutex_);
    if (state_ == EpochState::not_started) start(lock, epoch_, handed_out_);
    if (state_ == EpochState::cancelled) throw_cancelled();
    if (state_ == EpochState::failed) std::rethrow_exception(error_);
    if (state_ == EpochState::resumed_at_end) state_ = EpochState::ended;
    if (state_ == EpochState::ended) return {};
  }
  const Stopwatch watch;
  Slot* slot = nullptr;
  std::size_t batch = 0;
  Ring& ring = *works_->ring;
  const Ring::Pop popped = ring.pop_ready(slot, batch);
  const std::lock_guard lock(mutex_);
  stats_.starved_seconds += watch.seconds();
  if (popped == Ring::Pop::failed) require_ring();
  if (popped == Ring::Pop::stopped || state_ == EpochState::cancelled) {
    if (slot != nullptr) ring.give_back(slot, {slot->ready_event});
    throw_cancelled();
  }
  if (popped == Ring::Pop::all_lent)
    throw Error(ErrorCode::resource,
                fmt::format("all {} batches of the ring are held: release some, or raise prefetch",
                            ring.slots().size()));
  if (batch == slot->batches) {
    fail(slot->error);
    ring.give_back(slot, batch == 0 ? std::move(slot->released) : std::vector<Event>());
    std::rethrow_exception(error_);
  }
  const std::size_t first = slot->first_row(batch);
  const std::size_t end = slot->ends[batch];
  if (slot->verdict)
    last_ = {slot->verdict.get(), slot->verdict->batch(), first, end, slot->copied_event, slot->ready_event};
  if (++handed_out_ == setup_->order.batches()) state_ = EpochState::ended;
  ++stats_.batches;
  const auto mask = std::span(slot->indices.mask).subspan(first, end - first);
  stats_.samples += static_cast<std::uint64_t>(std::count(mask.begin(), mask.end(), 1));
  return {slot, batch};
}

bool Loader::Impl::wait_ready(std::chrono::milliseconds timeout) {
  require_same_process();
  {
    std::unique_lock lock(mutex_);
    if (works_ && works_->ring->failure()) return true;
    if (state_ == EpochState::not_started) start(lock, epoch_, handed_out_);
    if (state_ != EpochState::running) return true;
  }
  const Stopwatch watch;
  const bool ready = works_->ring->wait_ready(timeout);
  const std::lock_guard lock(mutex_);
  stats_.starved_seconds += watch.seconds();
  return ready;
}

void Loader::Impl::cancel() noexcept {
  if (made_by_another_process()) return;
  const std::lock_guard lock(mutex_);
  state_ = EpochState::cancelled;
  if (works_) works_->stop();
}

LoaderState Loader::Impl::state() const {
  require_same_process();
  const std::lock_guard lock(mutex_);
  const LoaderOptions& order = setup_->options;
  // With batch_pixels batches are counted in pixels, so that a position fits any number of ranks.
  const std::uint64_t global =
      (order.batch_pixels != 0 ? order.batch_pixels : order.batch_size) * order.world_size;
  const std::uint64_t fingerprint = from_hex(setup_->dataset.info().fingerprint).value_or(0);
  const bool started = works_ && first_epoch_;
  const std::string& views = started ? works_->setup->views_text : setup_->views_text;
  return {order.seed,
          epoch_,
          handed_out_ * global,
          setup_->dataset.size(),
          global,
          order.world_size,
          order_digest_,
          fingerprint,
          selection_digest_,
          from_hex(setup_->dataset.info().source_digest).value_or(0),
          views,
          views == setup_->views_text ? std::string() : setup_->views_text};
}

void Loader::Impl::resume(const LoaderState& state) {
  check_state(state);
  const auto of_epoch = state.views.empty() ? setup_ : setup_with(views_from_text(state.views));
  const auto next = state.next_views.empty() ? of_epoch : setup_with(views_from_text(state.next_views));
  use(of_epoch);
  start_epoch(state.epoch, state.position / state.global_batch);
  use(next);
}

// Throws unless it is a state of this data set and this sequence.
void Loader::Impl::check_state(const LoaderState& state) const {
  const LoaderState mine = this->state();
  auto refuse = [](const char* what, std::uint64_t theirs, std::uint64_t ours) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: the state has {} {}, this loader {}", what, theirs, ours));
  };
  if (state.samples != mine.samples) refuse("a data set of samples:", state.samples, mine.samples);
  if (state.fingerprint != mine.fingerprint)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "cannot resume: the state is of a data set with the fingerprint {}, this loader's has {}: "
            "open the data set of the run that wrote it",
            to_hex(state.fingerprint), to_hex(mine.fingerprint)));
  if (state.inputs != 0 && mine.inputs != 0 && state.inputs != mine.inputs)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: the state is of a data set of other images or labels (digest {}, "
                            "here {}): open the data set of the run that wrote it; LoaderState::inputs = 0 "
                            "takes its positions as they are",
                            to_hex(state.inputs), to_hex(mine.inputs)));
  if (state.selection != mine.selection)
    throw Error(ErrorCode::invalid_argument,
                "cannot resume: the state is of another selection of samples, or of other data sets put "
                "together; select "
                "and put together as in the run that wrote it");
  // A state of an earlier version, whose sequence was another one,
  // is good where no batch of its epoch was taken, or all were.
  const bool earlier = state.order != mine.order && state.order == setup_->order.earlier_digest();
  const bool between_epochs =
      state.position == 0 || state.position == setup_->order.batches() * mine.global_batch;
  if (earlier && !between_epochs)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("cannot resume: an earlier version wrote the state in the middle of epoch {}, after "
                    "{} samples, and this version has another sequence for this epoch (small sets, few "
                    "shards, groups and mixes are drawn anew since then): start epoch {} again, or go "
                    "on with the version that wrote it",
                    state.epoch, state.position, state.epoch));
  if (state.order != mine.order && !earlier)
    throw Error(
        ErrorCode::invalid_argument,
        "cannot resume: the state is of another sequence: order, window, tail, partition, buckets or what is "
        "drawn (sampling, weights, "
        "samples_per_epoch, repeats) differ, or the sizes of the shards, on which windowed and "
        "by_shard depend; use the "
        "options of the run that wrote it");
  if (state.seed != mine.seed) refuse("seed", state.seed, mine.seed);
  if (state.global_batch != mine.global_batch)
    refuse("global batch size", state.global_batch, mine.global_batch);
  if (setup_->options.partition == Partition::by_shard && state.world_size != mine.world_size)
    refuse("world size (by_shard)", state.world_size, mine.world_size);
  if (state.position % state.global_batch != 0 ||
      state.position / state.global_batch > setup_->order.batches())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: position {} is not at a batch of the epoch", state.position));
}

LoaderStats Loader::Impl::stats() const {
  require_same_process();
  const std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  if (works_) stats += works_->feeder.stats();
  const ShardStore::Traffic remote = ShardStore(setup_->dataset).traffic();
  stats.fetched_bytes = remote.bytes;
  stats.requests = remote.requests;
  stats.retries = remote.retries;
  return stats;
}

}  // namespace shard
