#include "transport/registered_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "base/system/thread_name.hpp"
#include "shard/error.hpp"
#include "transport/populate.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kProbeBytes = std::uint64_t{2} << 20U;
constexpr std::chrono::milliseconds kRegisterTurn{20};  // between looks at whether to stop
// H200, share of the link over the next seven epochs of 48,000 samples, and the epochs until all 7 GB are
// registered: 4: 0.6 to 0.75, more than eight; 16: 0.90; 64: 0.95, but then for half a minute.
constexpr int kPauses = 16;

}  // namespace

std::span<const std::byte> registered_range(const ShardReader& shard, bool with_fields) {
  const ShardHeader& header = shard.header();
  const std::uint64_t first = with_fields ? header.head_end : header.images_begin;
  return shard.mapping().subspan(first, header.images_end - first);
}

RegisteredShards::RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                                   std::uint64_t budget_bytes)
    : RegisteredShards(std::move(dataset), std::move(device), [budget_bytes] { return budget_bytes; }) {}

RegisteredShards::RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                                   std::function<std::uint64_t()> budget_bytes, bool with_fields)
    : dataset_(std::move(dataset)),
      device_(std::move(device)),
      ask_budget_(std::move(budget_bytes)),
      with_fields_(with_fields),
      shards_(dataset_.info().shards.size()) {
  budget_ = ask_budget_();
  const ShardReader& first = dataset_.shard(0);
  const std::span<const std::byte> images = registered_range(first, with_fields_);
  const auto probe = images.first(std::min<std::uint64_t>(images.size(), kProbeBytes));
  populate(first, probe, {});
  device_->register_read_only(probe);
}

bool RegisteredShards::try_use(std::uint32_t shard) {
  const Lock lock(mutex_);
  Entry& entry = shards_[shard];
  if (entry.state != State::registered) return false;
  add_user(entry);
  return true;
}

void RegisteredShards::add_user(Entry& entry) {
  ++entry.users;
  entry.last_used = ++uses_;
}

void RegisteredShards::use(std::uint32_t shard, const std::function<bool()>& stopping) {
  const Stopwatch watch;
  Lock lock(mutex_);
  Entry& entry = shards_[shard];
  if (entry.state == State::refused) {
    entry.state = State::absent;
    next_wanted_ = 0;
    --refused_;
  }
  urgent_ = shard;
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
                fmt::format("the shards that one batch touches exceed the budget of {} bytes for registered "
                            "memory, and there is no pinned memory to stage what does not fit; raise "
                            "registered_bytes or pinned_bytes, or use fewer window_shards",
                            budget_));
  add_user(entry);
}

void RegisteredShards::release(std::span<const std::uint32_t> shards, const Event& done,
                               const Stream* stream) {
  const Lock lock(mutex_);
  for (const std::uint32_t shard : shards) {
    --shards_[shard].users;
    if (done.impl() == nullptr) continue;
    std::vector<LastUse>& uses = shards_[shard].last_uses;
    const auto same =
        std::find_if(uses.begin(), uses.end(), [&](const LastUse& use) { return use.stream == stream; });
    if (same == uses.end())
      uses.push_back({stream, done});
    else
      same->done = done;
  }
  if (no_room_) wake();
}

void RegisteredShards::prefetch(std::vector<std::uint32_t> shards) {
  const Lock lock(mutex_);
  if (wanted_ == shards) return;
  for (const std::uint32_t shard : wanted_) shards_[shard].wanted = false;
  wanted_ = std::move(shards);
  for (const std::uint32_t shard : wanted_) shards_[shard].wanted = true;
  next_wanted_ = 0;
  wake();
}

void RegisteredShards::retry_refused() {
  const Lock lock(mutex_);
  if (refused_ == 0) return;
  for (Entry& entry : shards_) {
    if (entry.state != State::refused) continue;
    entry.state = State::absent;
    entry.retried = true;
  }
  refused_ = 0;
  next_wanted_ = 0;
  wake();
}

// Refuses the other shards that would be tried again after the same error: it would be in vain.
void RegisteredShards::refuse_again(const std::exception_ptr& error) {
  for (Entry& entry : shards_) {
    if (entry.state != State::absent || !entry.retried) continue;
    entry.state = State::refused;
    entry.error = error;
    ++refused_;
  }
}

void RegisteredShards::wake() {
  no_room_ = false;
  try {
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource, fmt::format("cannot start a loader's thread: {}", error.what()));
  }
  changed_.notify_all();
}

// The shard to register next.
std::optional<std::uint32_t> RegisteredShards::next() {
  if (no_room_) return std::nullopt;
  if (urgent_ && shards_[*urgent_].state == State::absent) return urgent_;
  for (; next_wanted_ < wanted_.size(); ++next_wanted_)
    if (shards_[wanted_[next_wanted_]].state == State::absent) return wanted_[next_wanted_];
  return std::nullopt;
}

void RegisteredShards::work(const std::stop_token& stop) {
  name_thread("shard-register");
  try {
    device_->enter_thread();
  } catch (const Error&) {  // the device is lost: each registration fails with this error
  }
  Lock lock(mutex_);
  std::optional<std::uint32_t> shard;
  while (changed_.wait(lock, stop, [&] { return (shard = next()).has_value(); }) && !stop.stop_requested())
    register_next(lock, *shard, stop);
}

std::vector<std::unique_ptr<Registration>> RegisteredShards::register_images(
    const ShardReader& shard, std::span<const std::byte> images, const std::stop_token& stop) {
  const std::uint64_t most = device_->info().registration_piece_bytes;
  std::vector<std::unique_ptr<Registration>> pieces;
  while (!images.empty()) {
    const auto piece = images.first(most == 0 ? images.size() : std::min<std::uint64_t>(images.size(), most));
    images = images.subspan(piece.size());
    populate(shard, piece, stop);
    const Stopwatch watch;
    pieces.push_back(device_->register_read_only(piece, stop));
    pause(watch.seconds(), stop);
  }
  return pieces;
}

void RegisteredShards::pause(double piece_seconds, const std::stop_token& stop) {
  Lock lock(mutex_);
  changed_.wait_for(lock, stop, std::chrono::duration<double>(kPauses * piece_seconds),
                    [&] { return urgent_.has_value(); });
}

// Registers the shard, if it still is the next one once there is room for it.
void RegisteredShards::register_next(Lock& lock, std::uint32_t shard, const std::stop_token& stop) {
  Entry& entry = shards_[shard];
  std::vector<std::unique_ptr<Registration>> pieces;
  std::uint64_t bytes = 0;
  std::string refusal;
  bool by_platform = true;  // false: it is refused because something is wrong with the file
  try {
    lock.unlock();
    const ShardReader& reader = dataset_.shard(shard);  // may open it
    const std::span<const std::byte> images = registered_range(reader, with_fields_);
    const std::uint64_t budget = ask_budget_();
    lock.lock();
    budget_ = budget;
    if (!make_room(lock, shard, images.size()) || next() != shard) return;
    bytes = images.size();
    reserved_bytes_ += bytes;
    entry.state = State::changing;
    lock.unlock();
    pieces = register_images(reader, images, stop);
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

// Makes room for a shard. False: all registered shards are in use or wanted. Releases the lock meanwhile, so
// the caller must check the state again.
bool RegisteredShards::make_room(Lock& lock, std::uint32_t shard, std::uint64_t bytes) {
  while (reserved_bytes_ + bytes > budget_) {
    // Those not wanted first, then by last use.
    const auto rank = [](const Entry& entry) { return std::pair(entry.wanted, entry.last_used); };
    std::optional<std::uint32_t> victim;
    for (std::uint32_t other = 0; other < shards_.size(); ++other) {
      const Entry& entry = shards_[other];
      if (entry.state != State::registered || entry.users != 0 || other == urgent_) continue;
      if (entry.wanted && shard != urgent_) continue;
      if (!victim || rank(entry) < rank(shards_[*victim])) victim = other;
    }
    if (!victim) {
      no_room_ = !urgent_ || shard == urgent_ || shards_[*urgent_].state != State::absent;
      changed_.notify_all();
      return false;
    }
    evict(lock, *victim);
  }
  return true;
}

void RegisteredShards::evict(Lock& lock, std::uint32_t shard) {
  Entry& entry = shards_[shard];
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

std::uint64_t RegisteredShards::bytes() const {
  const Lock lock(mutex_);
  return bytes_;
}

bool RegisteredShards::holds_all() const {
  const Lock lock(mutex_);
  return registered_ == shards_.size();
}

std::string RegisteredShards::remark() const {
  const Lock lock(mutex_);
  if (refused_ == 0) return {};
  return fmt::format("{} of {} shards go through staging: {}", refused_, shards_.size(), refusal_);
}

}  // namespace shard
