#include "format/dataset/shard_turns.hpp"

#include "shard/error.hpp"

namespace shard {

ShardTurns::Turn::~Turn() {
  if (turns_ == nullptr) return;
  {
    const std::lock_guard lock(turns_->mutex_);
    turns_->taken_.erase(shard_);
  }
  turns_->ended_.notify_all();
}

ShardTurns::Turn ShardTurns::wait(std::uint32_t shard, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!ended_.wait(lock, stop, [&] { return !taken_.contains(shard); }))
    throw Error(ErrorCode::cancelled, "stopped while another thread fetches a shard");
  taken_.insert(shard);
  return {*this, shard};
}

}  // namespace shard
