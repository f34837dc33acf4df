#include "loader_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checksum.hpp"
#include "base/stopwatch.hpp"
#include "profiler_range.hpp"
#include "sample_errors.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

[[noreturn]] void throw_cancelled() { throw Error(ErrorCode::cancelled, "the loader was cancelled"); }

}  // namespace

Loader::Impl::Impl(Dataset dataset, std::shared_ptr<Device> device, LoaderOptions options)
    : setup_(std::move(dataset), std::move(device), std::move(options)),
      order_digest_(setup_.order.digest()),
      selection_digest_(setup_.dataset.selection_digest()),
      ring_(std::make_shared<Ring>(setup_.device, std::size_t{setup_.options.prefetch} + 1)),
      retirement_{*ring_},
      feeder_(setup_, *ring_, mailbox_) {}

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
  if (const std::exception_ptr failure = ring_->failure()) std::rethrow_exception(failure);
}

void Loader::Impl::start_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  require_same_process();
  require_ring();
  std::unique_lock lock(mutex_);
  const bool at_end = state_ == EpochState::ended || state_ == EpochState::resumed_at_end;
  if (at_end && epoch == epoch_ + 1 && first_batch == 0) {  // the feeder has started it already
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
  mailbox_.stop();
  ring_->stop();  // a feeder that waits for a slot returns
  lock.unlock();
  mailbox_.wait_idle();
  lock.lock();
  if (state_ != EpochState::starting) return;
  ring_->drain();
  mailbox_.run({epoch, first_batch});
  state_ = first_batch < setup_.order.batches() ? EpochState::running : EpochState::resumed_at_end;
}

// If the device decodes samples, it is known only when a batch is on the device whether its samples are
// valid.
void Loader::Impl::check_last_batch() {
  if (last_.verdict == nullptr) return;
  try {
    last_.ready.wait();
    last_.copied.wait();
  } catch (const Error&) {
    rethrow_named(setup_.dataset);
  }
  try {
    last_.verdict->check(last_.batch);
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

Slot* Loader::Impl::next() {
  require_same_process();
  require_ring();
  const ProfilerRange range(*setup_.device, "shard: next");
  check_last_batch();
  {
    std::unique_lock lock(mutex_);
    if (state_ == EpochState::not_started) start(lock, epoch_, handed_out_);
    if (state_ == EpochState::cancelled) throw_cancelled();
    if (state_ == EpochState::failed) std::rethrow_exception(error_);
    if (state_ == EpochState::resumed_at_end) state_ = EpochState::ended;
    if (state_ == EpochState::ended) return nullptr;
  }
  const Stopwatch watch;
  Slot* slot = nullptr;
  const Ring::Pop popped = ring_->pop_ready(slot);
  const std::lock_guard lock(mutex_);
  stats_.starved_seconds += watch.seconds();
  if (popped == Ring::Pop::failed) require_ring();
  if (popped == Ring::Pop::stopped || state_ == EpochState::cancelled) {
    if (slot != nullptr) ring_->give_back(slot, {slot->ready_event}, true);
    throw_cancelled();
  }
  if (popped == Ring::Pop::all_lent)
    throw Error(ErrorCode::resource,
                fmt::format("all {} batches of the ring are held: release some, or raise prefetch",
                            ring_->slots().size()));
  if (slot->error) {
    fail(std::exchange(slot->error, nullptr));
    ring_->give_back(slot, std::move(slot->released), true);
    std::rethrow_exception(error_);
  }
  if (slot->verdict)
    last_ = {slot->verdict.get(), slot->verdict->batch(), slot->copied_event, slot->ready_event};
  if (++handed_out_ == setup_.order.batches()) state_ = EpochState::ended;
  ++stats_.batches;
  const std::vector<std::uint8_t>& mask = slot->indices.mask;
  stats_.samples += static_cast<std::uint64_t>(std::count(mask.begin(), mask.end(), 1));
  return slot;
}

bool Loader::Impl::wait_ready(std::chrono::milliseconds timeout) {
  require_same_process();
  {
    std::unique_lock lock(mutex_);
    if (ring_->failure()) return true;
    if (state_ == EpochState::not_started) start(lock, epoch_, handed_out_);
    if (state_ != EpochState::running) return true;
  }
  const Stopwatch watch;
  const bool ready = ring_->wait_ready(timeout);
  const std::lock_guard lock(mutex_);
  stats_.starved_seconds += watch.seconds();
  return ready;
}

void Loader::Impl::cancel() noexcept {
  if (made_by_another_process()) return;
  const std::lock_guard lock(mutex_);
  state_ = EpochState::cancelled;
  mailbox_.stop();
  ring_->stop();
}

LoaderState Loader::Impl::state() const {
  require_same_process();
  const OrderOptions& order = setup_.options;
  const std::uint64_t global = order.batch_size * order.world_size;
  const std::uint64_t fingerprint = from_hex(setup_.dataset.info().fingerprint).value_or(0);
  const std::lock_guard lock(mutex_);
  return {order.seed,       epoch_,        handed_out_ * global, setup_.dataset.size(), global,
          order.world_size, order_digest_, fingerprint,          selection_digest_};
}

void Loader::Impl::resume(const LoaderState& state) {
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
  if (state.selection != mine.selection)
    throw Error(ErrorCode::invalid_argument,
                "cannot resume: the state is of another selection of samples, or of other data sets put "
                "together; select "
                "and put together as in the run that wrote it");
  if (state.order != mine.order)
    throw Error(ErrorCode::invalid_argument,
                "cannot resume: the state is of another sequence: order, window, tail, partition or what is "
                "drawn (sampling, weights, "
                "samples_per_epoch, repeats) differ, or the sizes of the shards, on which windowed and "
                "by_shard depend; use the "
                "options of the run that wrote it");
  if (state.seed != mine.seed) refuse("seed", state.seed, mine.seed);
  if (state.global_batch != mine.global_batch)
    refuse("global batch size", state.global_batch, mine.global_batch);
  if (setup_.options.partition == Partition::by_shard && state.world_size != mine.world_size)
    refuse("world size (by_shard)", state.world_size, mine.world_size);
  if (state.position % state.global_batch != 0 ||
      state.position / state.global_batch > setup_.order.batches())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot resume: position {} is not at a batch of the epoch", state.position));
  start_epoch(state.epoch, state.position / state.global_batch);
}

LoaderStats Loader::Impl::stats() const {
  require_same_process();
  LoaderStats stats = feeder_.stats();
  const std::lock_guard lock(mutex_);
  stats.batches = stats_.batches;
  stats.samples = stats_.samples;
  stats.starved_seconds = stats_.starved_seconds;
  return stats;
}

}  // namespace shard
