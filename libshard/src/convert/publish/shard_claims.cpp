#include "convert/publish/shard_claims.hpp"

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>

#include "convert/publish/journal.hpp"

namespace shard::convert {

namespace {

// How often a process looks whether a shard of another one has become free, plus a little per shard.
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kLookPerShard = std::chrono::milliseconds(2);
// How often it looks at all receipts, so that its progress is that of the data set.
constexpr auto kSweep = std::chrono::seconds(5);
// No shard takes that long: the processes that hold the last ones have stopped without ending.
constexpr auto kClaimPatience = std::chrono::minutes(30);

}  // namespace

ShardClaims::ShardClaims(const std::filesystem::path& out, const std::filesystem::path& lock_file,
                         std::vector<std::uint64_t> todo, std::function<bool(std::uint64_t)> finished,
                         std::function<void(std::uint64_t)> on_finished)
    : out_(out),
      todo_(std::move(todo)),
      finished_(std::move(finished)),
      on_finished_(std::move(on_finished)),
      locks_(lock_file),
      next_look_(Clock::now()),
      next_sweep_(next_look_),
      last_change_(next_look_) {
  std::shuffle(todo_.begin(), todo_.end(), std::minstd_rand(std::random_device()()));
}

bool ShardClaims::nothing_happens() {
  std::error_code error;
  const auto now = std::filesystem::last_write_time(out_, error);
  if (!error && now != seen_) {
    seen_ = now;
    last_change_ = Clock::now();
  }
  return Clock::now() - last_change_ > kClaimPatience;
}

void ShardClaims::drop_finished() {
  if (Clock::now() < next_sweep_) return;
  const std::vector<std::uint64_t> there = receipts_in(out_);  // sorted
  std::erase_if(todo_, [&](std::uint64_t shard) {
    if (!std::binary_search(there.begin(), there.end(), shard) || !finished_(shard)) return false;
    on_finished_(shard);
    return true;
  });
  next_sweep_ = Clock::now() + kSweep;
}

ShardClaims::Found ShardClaims::take(std::uint64_t& shard) {
  if (todo_.empty()) return Found::none;
  if (Clock::now() < next_look_) return Found::wait;
  drop_finished();
  for (std::size_t i = todo_.size(); i-- > 0;) {
    const std::uint64_t candidate = todo_[i];
    const auto forget = [&] { todo_.erase(todo_.begin() + static_cast<std::ptrdiff_t>(i)); };
    const LockResult lock = locks_.try_lock(candidate);
    // Looked at with the lock: its former holder may have finished it since.
    const bool finished = finished_(candidate);
    if (lock == LockResult::busy && !finished) continue;
    forget();
    if (finished) {
      if (lock == LockResult::taken) locks_.unlock(candidate);
      on_finished_(candidate);
      continue;
    }
    last_change_ = Clock::now();
    shard = candidate;
    return Found::shard;
  }
  if (todo_.empty() || nothing_happens()) {
    todo_.clear();
    return Found::none;
  }
  next_look_ = Clock::now() + kLook + kLookPerShard * todo_.size();
  return Found::wait;
}

}  // namespace shard::convert
