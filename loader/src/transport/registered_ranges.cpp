#include "transport/registered_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "base/system/thread_name.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kProbeBytes = std::uint64_t{2} << 20U;
constexpr std::chrono::milliseconds kRegisterTurn{20};  // between looks at whether to stop
// Of the time that a piece takes. What takes no more than kAtOnce in all is done at once. H200, 12.9 GB in
// the page cache (45 GB/s are registered without pauses), the first 5 s of what later ones bring: pauses of
// 0.1: 0.90; 0.3: 0.84; 1: 0.85; 4: 0.78; 16: 0.82. Of 60 GB, 10 s: 1: 0.42; nothing registered: 1.0.
constexpr double kPause = 16;
constexpr double kShortPause = 0.1;
constexpr double kAtOnce = 1;  // seconds

}  // namespace

RegisteredRanges::RegisteredRanges(std::unique_ptr<const MappedRanges> ranges, std::shared_ptr<Device> device,
                                   std::function<std::uint64_t()> budget_bytes)
    : ranges_(std::move(ranges)),
      device_(std::move(device)),
      ask_budget_(std::move(budget_bytes)),
      entries_(ranges_->size()) {
  budget_ = ask_budget_();
}

void RegisteredRanges::probe() {
  const std::span<const std::byte> first = ranges_->range(0);
  const auto probe = first.first(std::min<std::uint64_t>(first.size(), kProbeBytes));
  ranges_->read_in(0, probe, {});
  device_->register_read_only(probe);
}

bool RegisteredRanges::try_use(std::uint32_t number) {
  const Lock lock(mutex_);
  Entry& entry = entries_[number];
  if (entry.state != State::registered) return false;
  add_user(entry);
  return true;
}

void RegisteredRanges::add_user(Entry& entry) {
  ++entry.users;
  entry.last_used = ++uses_;
}

void RegisteredRanges::use(std::uint32_t number, const std::function<bool()>& stopping) {
  const Stopwatch watch;
  Lock lock(mutex_);
  Entry& entry = entries_[number];
  if (entry.state == State::refused) {
    entry.state = State::absent;
    next_wanted_ = 0;
    --refused_;
  }
  urgent_ = number;
  wake();
  bool stopped = false;
  const auto over = [&] {
    return entry.state == State::registered || entry.state == State::refused || no_room_;
  };
  while (!stopped && !changed_.wait_for(lock, kRegisterTurn, over)) stopped = stopping && stopping();
  urgent_.reset();
  waited_seconds_ += watch.seconds();
  if (stopped) throw Error(ErrorCode::cancelled, "stopped while a shard was being registered");
  if (entry.state == State::refused) std::rethrow_exception(entry.error);
  if (entry.state != State::registered)
    throw Error(ErrorCode::resource,
                fmt::format("the {} that one batch touches exceed the budget of {} bytes for registered "
                            "memory, and there is no pinned memory to stage what does not fit; raise "
                            "registered_bytes or pinned_bytes, or use fewer window_shards",
                            ranges_->name(), budget_));
  add_user(entry);
}

void RegisteredRanges::release(std::span<const std::uint32_t> numbers, const Event& done,
                               const Stream* stream) {
  const Lock lock(mutex_);
  for (const std::uint32_t number : numbers) {
    --entries_[number].users;
    if (done.impl() == nullptr) continue;
    std::vector<LastUse>& uses = entries_[number].last_uses;
    const auto same =
        std::find_if(uses.begin(), uses.end(), [&](const LastUse& use) { return use.stream == stream; });
    if (same == uses.end())
      uses.push_back({stream, done});
    else
      same->done = done;
  }
  if (no_room_) wake();
}

void RegisteredRanges::prefetch(std::vector<std::uint32_t> numbers, NoRoom no_room) {
  const Lock lock(mutex_);
  if (wanted_ == numbers && wanted_without_room_ == no_room) return;
  for (const std::uint32_t number : wanted_) entries_[number].wanted = false;
  std::swap(wanted_, numbers);
  for (const std::uint32_t number : wanted_) entries_[number].wanted = true;
  for (const std::uint32_t number : numbers)
    entries_[number].passed = entries_[number].passed && entries_[number].wanted;
  wanted_without_room_ = no_room;
  next_wanted_ = 0;
  wake();
}

void RegisteredRanges::retry_refused() {
  const Lock lock(mutex_);
  if (refused_ == 0) return;
  for (Entry& entry : entries_) {
    if (entry.state != State::refused) continue;
    entry.state = State::absent;
    entry.retried = true;
  }
  refused_ = 0;
  next_wanted_ = 0;
  wake();
}

// Refuses the other shards that would be tried again after the same error: it would be in vain.
void RegisteredRanges::refuse_again(const std::exception_ptr& error) {
  for (Entry& entry : entries_) {
    if (entry.state != State::absent || !entry.retried) continue;
    entry.state = State::refused;
    entry.error = error;
    ++refused_;
  }
}

void RegisteredRanges::wake() {
  no_room_ = false;
  try {
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource, fmt::format("cannot start a loader's thread: {}", error.what()));
  }
  changed_.notify_all();
}

// The shard to register next.
std::optional<std::uint32_t> RegisteredRanges::next() {
  if (no_room_) return std::nullopt;
  if (urgent_ && entries_[*urgent_].state == State::absent) return urgent_;
  for (; next_wanted_ < wanted_.size(); ++next_wanted_) {
    const Entry& entry = entries_[wanted_[next_wanted_]];
    if (entry.state == State::absent && !entry.passed) return wanted_[next_wanted_];
  }
  return std::nullopt;
}

void RegisteredRanges::work(const std::stop_token& stop) {
  name_thread("shard-register");
  try {
    device_->enter_thread();
  } catch (const Error&) {  // the device is lost: each registration fails with this error
  }
  Lock lock(mutex_);
  std::optional<std::uint32_t> number;
  while (changed_.wait(lock, stop, [&] { return (number = next()).has_value(); }) && !stop.stop_requested())
    register_next(lock, *number, stop);
}

std::vector<std::unique_ptr<Registration>> RegisteredRanges::register_range(std::uint32_t number,
                                                                            std::span<const std::byte> range,
                                                                            const std::stop_token& stop) {
  const std::uint64_t most = device_->info().registration_piece_bytes;
  const auto whole_bytes = static_cast<double>(range.size());
  std::vector<std::unique_ptr<Registration>> pieces;
  while (!range.empty()) {
    const auto piece = range.first(most == 0 ? range.size() : std::min<std::uint64_t>(range.size(), most));
    range = range.subspan(piece.size());
    ranges_->read_in(number, piece, stop);
    const Stopwatch watch;
    pieces.push_back(device_->register_read_only(piece, stop));
    pause(watch.seconds(), whole_bytes / static_cast<double>(piece.size()), stop);
  }
  return pieces;
}

// After one of so many pieces of a range.
void RegisteredRanges::pause(double piece_seconds, double pieces, const std::stop_token& stop) {
  Lock lock(mutex_);
  const auto ranges = static_cast<double>(wanted_.size() - next_wanted_);
  const double factor = ranges * pieces * piece_seconds <= kAtOnce ? kShortPause : kPause;
  changed_.wait_for(lock, stop, std::chrono::duration<double>(factor * piece_seconds),
                    [&] { return urgent_.has_value(); });
}

// Registers the shard, if it still is the next one once there is room for it.
void RegisteredRanges::register_next(Lock& lock, std::uint32_t number, const std::stop_token& stop) {
  Entry& entry = entries_[number];
  std::vector<std::unique_ptr<Registration>> pieces;
  std::uint64_t bytes = 0;
  std::string refusal;
  bool by_platform = true;  // false: it is refused because something is wrong with the file
  try {
    lock.unlock();
    const std::span<const std::byte> range = ranges_->range(number);  // may open it
    const std::uint64_t budget = ask_budget_();
    lock.lock();
    budget_ = budget;
    const bool room = make_room(lock, number, range.size());
    if (next() != number) return;
    if (!room) return pass(lock, number, range, stop);
    bytes = range.size();
    reserved_bytes_ += bytes;
    entry.state = State::changing;
    lock.unlock();
    pieces = register_range(number, range, stop);
  } catch (const Error& error) {
    entry.error = std::current_exception();  // nobody else looks at it in this state
    refusal = error.what();
    by_platform = error.code() == ErrorCode::resource || error.code() == ErrorCode::unsupported;
  } catch (const std::exception& error) {
    entry.error = std::current_exception();
    refusal = error.what();
  }
  if (!lock.owns_lock()) lock.lock();
  if (stop.stop_requested() && pieces.empty()) {  // no shard is needed any longer
    entry.state = State::absent;
    reserved_bytes_ -= bytes;
  } else if (!pieces.empty()) {
    entry.state = State::registered;
    entry.pieces = std::move(pieces);
    entry.bytes = bytes;
    entry.last_uses.clear();
    entry.retried = false;
    bytes_ += bytes;
    ++registered_;
  } else {
    entry.state = State::refused;
    reserved_bytes_ -= bytes;
    ++refused_;
    refusal_ = std::move(refusal);
    if (std::exchange(entry.retried, false) && by_platform) refuse_again(entry.error);
  }
  changed_.notify_all();
}

// There is no room for the shard that is next.
void RegisteredRanges::pass(Lock& lock, std::uint32_t number, std::span<const std::byte> range,
                            const std::stop_token& stop) {
  entries_[number].passed = true;
  if (wanted_without_room_ != NoRoom::read_in) return;
  lock.unlock();
  ranges_->read_in(number, range, stop);
  lock.lock();
}

// Makes room for a shard. False: all registered shards are in use or wanted, or stay. Releases the lock
// meanwhile, so the caller must check the state again.
bool RegisteredRanges::make_room(Lock& lock, std::uint32_t number, std::uint64_t bytes) {
  while (reserved_bytes_ + bytes > budget_) {
    // Those not wanted first, then by last use.
    const auto rank = [](const Entry& entry) { return std::pair(entry.wanted, entry.last_used); };
    std::optional<std::uint32_t> victim;
    for (std::uint32_t other = 0; other < entries_.size(); ++other) {
      const Entry& entry = entries_[other];
      if (entry.state != State::registered || entry.users != 0 || other == urgent_) continue;
      if (number != urgent_ && (entry.wanted || wanted_without_room_ != NoRoom::evict)) continue;
      if (!victim || rank(entry) < rank(entries_[*victim])) victim = other;
    }
    if (!victim && number != urgent_ && wanted_without_room_ != NoRoom::evict) return false;
    if (!victim) {
      no_room_ = !urgent_ || number == urgent_ || entries_[*urgent_].state != State::absent;
      changed_.notify_all();
      return false;
    }
    evict(lock, *victim);
  }
  return true;
}

void RegisteredRanges::evict(Lock& lock, std::uint32_t number) {
  Entry& entry = entries_[number];
  std::vector<std::unique_ptr<Registration>> pieces = std::move(entry.pieces);
  const std::vector<LastUse> last_uses = std::exchange(entry.last_uses, {});
  const std::uint64_t bytes = entry.bytes;
  entry.state = State::changing;
  bytes_ -= bytes;
  --registered_;
  lock.unlock();
  for (const LastUse& use : last_uses) {
    try {
      use.done.wait();
    } catch (...) {  // the copy failed, and so does its batch
    }
  }
  pieces.clear();
  lock.lock();
  entry.state = State::absent;
  reserved_bytes_ -= bytes;
  if (entry.wanted) next_wanted_ = 0;
  changed_.notify_all();
}

std::uint64_t RegisteredRanges::bytes() const {
  const Lock lock(mutex_);
  return bytes_;
}

bool RegisteredRanges::holds_all() const {
  const Lock lock(mutex_);
  return registered_ == entries_.size();
}

std::string RegisteredRanges::remark() const {
  const Lock lock(mutex_);
  if (refused_ == 0) return {};
  return fmt::format("{} of {} {} go through staging: {}", refused_, entries_.size(), ranges_->name(),
                     refusal_);
}

}  // namespace shard
