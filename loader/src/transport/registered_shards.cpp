#include "transport/registered_shards.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "shard/error.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

std::span<const std::byte> images_of(const ShardReader& shard) {
  const std::uint64_t first = shard.header().images_begin;
  return shard.mapping().subspan(first, shard.header().images_end - first);
}

// Reads the pages in; a page that cannot be had is an error here and not a signal later.
void populate(const ShardReader& shard) {
  const std::span<const std::byte> images = images_of(shard);
  if (::madvise(const_cast<std::byte*>(images.data()), images.size(), MADV_POPULATE_READ) == 0 ||
      errno == EINVAL)
    return;
  const int error = errno;
  check_alive(shard);  // says so when the file was cut: EFAULT tells nobody
  throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", shard.path().string(),
                                         std::generic_category().message(error)));
}

}  // namespace

RegisteredShards::RegisteredShards(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Device> device,
                                   std::uint64_t budget_bytes)
    : dataset_(std::move(dataset)), device_(std::move(device)), budget_(budget_bytes) {}

std::uint64_t RegisteredShards::images_bytes(std::uint32_t shard) const {
  return images_of(dataset_->shard(shard)).size();
}

void RegisteredShards::begin_batch() {
  const Lock lock(mutex_);
  ++batch_;
  in_batch_.clear();
}

void RegisteredShards::use(std::uint32_t shard) {
  Lock lock(mutex_);
  auto found = registered_.find(shard);
  if (found == registered_.end()) {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t bytes = images_bytes(shard);
    failed_.erase(shard);
    while ((found = registered_.find(shard)) == registered_.end()) {
      if (changing_.contains(shard)) {
        changed_.wait(lock);
        continue;
      }
      switch (make_room(lock, bytes, true)) {
        case Room::made:
          add(lock, shard, bytes);
          break;
        case Room::later:
          break;
        case Room::none:
          throw Error(
              ErrorCode::resource,
              fmt::format("one batch touches {} shards or more, which exceed the budget of {} bytes for "
                          "registered memory; raise registered_bytes, or use fewer window_shards",
                          in_batch_.size() + 1, budget_));
      }
    }
    waited_nanoseconds_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  recency_.splice(recency_.end(), recency_, found->second.recency);
  if (std::exchange(found->second.batch, batch_) != batch_) in_batch_.push_back(shard);
}

void RegisteredShards::end_batch(const Event& done) {
  const Lock lock(mutex_);
  for (const std::uint32_t shard : in_batch_) registered_.at(shard).last_use = done;
  if (std::exchange(blocked_, false)) changed_.notify_all();
}

void RegisteredShards::ahead(std::vector<std::uint32_t> shards) {
  const Lock lock(mutex_);
  if (wanted_ == shards) return;
  wanted_ = std::move(shards);
  blocked_ = false;
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  changed_.notify_all();
}

// Waits, with the lock given up meanwhile, or takes what it can: look again at what is there afterwards.
RegisteredShards::Room RegisteredShards::make_room(Lock& lock, std::uint64_t bytes, bool may_take_wanted) {
  while (bytes_ + bytes > budget_) {
    auto victim = recency_.end();
    for (const bool take_wanted : {false, true}) {
      if (victim != recency_.end() || (take_wanted && !may_take_wanted)) break;
      victim = std::find_if(recency_.begin(), recency_.end(), [&](std::uint32_t shard) {
        return registered_.at(shard).batch != batch_ &&
               (take_wanted || std::find(wanted_.begin(), wanted_.end(), shard) == wanted_.end());
      });
    }
    if (victim != recency_.end()) {
      give_up(lock, *victim);
    } else if (may_take_wanted && !changing_.empty()) {
      changed_.wait(lock);
      return Room::later;
    } else {
      return Room::none;
    }
  }
  return Room::made;
}

void RegisteredShards::give_up(Lock& lock, std::uint32_t shard) {
  auto node = registered_.extract(shard);
  Entry& entry = node.mapped();
  recency_.erase(entry.recency);
  changing_.insert(shard);
  lock.unlock();
  try {
    entry.last_use.wait();
  } catch (...) {  // the copy failed: its batch says so
  }
  entry.registration.reset();
  lock.lock();
  bytes_ -= entry.bytes;
  changing_.erase(shard);
  changed_.notify_all();
}

// There is room. Others may do the same with other shards meanwhile.
void RegisteredShards::add(Lock& lock, std::uint32_t shard, std::uint64_t bytes) {
  bytes_ += bytes;
  changing_.insert(shard);
  lock.unlock();
  Entry entry;
  entry.bytes = bytes;
  std::exception_ptr error;
  try {
    const ShardReader& reader = dataset_->shard(shard);
    populate(reader);
    entry.registration = device_->register_read_only(images_of(reader));
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  changing_.erase(shard);
  changed_.notify_all();
  if (error) {
    bytes_ -= bytes;
    std::rethrow_exception(error);
  }
  entry.recency = recency_.insert(recency_.end(), shard);
  registered_.emplace(shard, std::move(entry));
}

bool RegisteredShards::next_ahead(std::uint32_t& shard) const {
  if (blocked_) return false;
  for (const std::uint32_t candidate : wanted_) {
    if (registered_.contains(candidate) || changing_.contains(candidate) || failed_.contains(candidate))
      continue;
    shard = candidate;
    return true;
  }
  return false;
}

void RegisteredShards::work(const std::stop_token& stop) {
  Lock lock(mutex_);
  std::uint32_t shard = 0;
  while (changed_.wait(lock, stop, [&] { return next_ahead(shard); })) {
    try {
      lock.unlock();
      const std::uint64_t bytes = images_bytes(shard);  // may open the shard
      lock.lock();
      if (make_room(lock, bytes, false) != Room::made) {
        blocked_ = true;
      } else if (std::uint32_t still = 0; next_ahead(still) && still == shard) {
        add(lock, shard, bytes);
      }
    } catch (...) {  // said again when the shard is used
      if (!lock.owns_lock()) lock.lock();
      failed_.insert(shard);
    }
  }
}

std::uint64_t RegisteredShards::bytes() const {
  const Lock lock(mutex_);
  return bytes_;
}

std::uint64_t RegisteredShards::waited_nanoseconds() const {
  const Lock lock(mutex_);
  return waited_nanoseconds_;
}

}  // namespace shard
