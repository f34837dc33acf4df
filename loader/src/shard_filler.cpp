#include "shard_filler.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/thread_name.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// Each waits for the requests of one shard and then reads it for its digests: enough that requests never pause.
constexpr unsigned kThreads = 3;
constexpr std::chrono::milliseconds kTurn{20};  // between looks at whether to stop

bool goes_by_shard(const OrderOptions& options) {
  return options.order != OrderMode::shuffle || options.partition == Partition::by_shard;
}

}  // namespace

ShardFiller::ShardFiller(const LoaderSetup& setup)
    : setup_(setup),
      waits_(goes_by_shard(setup.options)),
      states_(setup.dataset.info().shards.size(), State::pending) {}

ShardFiller::~ShardFiller() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ShardFiller::start(std::uint64_t epoch, std::uint64_t index) {
  const auto shards = static_cast<std::uint32_t>(states_.size());
  for (const std::uint32_t shard : setup_.order.shards_from(epoch, index, shards)) queue_.push_back(shard);
  // The others, from another one in each rank: ranks of a node share the cache, and so the work.
  const OrderOptions& order = setup_.options;
  const auto first = static_cast<std::uint32_t>(std::uint64_t{shards} * order.rank / order.world_size);
  for (std::uint32_t i = 0; i < shards; ++i) queue_.push_back((first + i) % shards);
  try {
    for (unsigned i = 0; i < kThreads; ++i)
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  } catch (const std::system_error&) {
    if (threads_.empty()) states_.assign(states_.size(), State::over);  // everything is read by range
  }
}

void ShardFiller::before_batch(std::uint64_t epoch, std::uint64_t index,
                               const std::vector<std::uint32_t>& shards,
                               const std::function<bool()>& stopping) {
  std::unique_lock lock(mutex_);
  if (threads_.empty()) start(epoch, index);
  if (!waits_) return;
  for (const std::uint32_t shard : shards)
    if (states_[shard] == State::pending) queue_.push_front(shard);
  changed_.notify_all();
  const auto over = [&] {
    return std::all_of(shards.begin(), shards.end(),
                       [&](std::uint32_t shard) { return states_[shard] == State::over; });
  };
  while (!over()) {
    if (stopping()) throw Error(ErrorCode::cancelled, "stopped while shards are fetched");
    changed_.wait_for(lock, kTurn);
  }
}

void ShardFiller::work(const std::stop_token& stop) {
  name_thread("shard-fill");
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !queue_.empty()) {
    const std::uint32_t shard = queue_.front();
    queue_.pop_front();
    if (states_[shard] != State::pending) continue;
    states_[shard] = State::working;
    lock.unlock();
    try {
      static_cast<void>(setup_.dataset.bring(shard, stop));
    } catch (const std::exception&) {  // the batch that needs the shard gets the error
    }
    lock.lock();
    states_[shard] = State::over;
    changed_.notify_all();
  }
}

}  // namespace shard
