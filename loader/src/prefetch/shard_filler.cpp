#include "prefetch/shard_filler.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/thread_name.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr unsigned kAhead = 2;                      // shards whose heads are here before their turn
constexpr std::chrono::milliseconds kFillTurn{20};  // between looks at whether to stop

void wait_for_end(const Event& event) noexcept {
  try {
    event.wait();
  } catch (...) {  // the batch failed, so it has ended; whoever waits for it gets the error
  }
}

std::vector<std::uint64_t> shard_bytes(const Dataset& data) {
  std::vector<std::uint64_t> bytes;
  for (const ShardSummary& shard : data.info().shards) bytes.push_back(shard.size_bytes);
  return bytes;
}

// By shard: all numbers that it has in the data set, if there are several.
// concat(data, data) has each shard twice.
std::map<std::uint32_t, std::vector<std::uint32_t>> twins_of(const Dataset& data) {
  std::map<const ShardSummary*, std::vector<std::uint32_t>> numbers;
  for (std::uint32_t shard = 0; shard < data.info().shards.size(); ++shard)
    numbers[&data.source(shard).shard].push_back(shard);
  std::map<std::uint32_t, std::vector<std::uint32_t>> twins;
  for (const auto& [summary, same] : numbers)
    if (same.size() > 1)
      for (const std::uint32_t shard : same) twins[shard] = same;
  return twins;
}

}  // namespace

ShardFiller::ShardFiller(const LoaderSetup& setup)
    : setup_(setup),
      store_(setup.dataset),
      twins_(twins_of(setup.dataset)),
      schedule_(setup.order, shard_bytes(setup.dataset), !setup.options.remote.cache.empty(),
                setup.options.remote.transit_bytes) {}

ShardFiller::~ShardFiller() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  for (const std::uint32_t shard : schedule_.in_transit())
    static_cast<void>(carry_out({ShardSchedule::Job::Kind::leave, shard, {}}, read_, {}));
}

void ShardFiller::start_threads() {
  if (ending_) return;
  try {
    while (threads_.size() < width_.now() + kAhead)
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  } catch (const std::system_error&) {  // with none, everything is read by range
  }
}

std::vector<std::uint32_t> ShardFiller::with_twins(const std::vector<std::uint32_t>& shards) const {
  std::vector<std::uint32_t> all = shards;
  for (const std::uint32_t shard : shards)
    if (const auto it = twins_.find(shard); it != twins_.end())
      all.insert(all.end(), it->second.begin(), it->second.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool ShardFiller::ready(std::uint64_t epoch, std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  return schedule_.ready(epoch, index);
}

void ShardFiller::before_batch(std::uint64_t epoch, std::uint64_t index,
                               const std::vector<std::uint32_t>& shards,
                               const std::function<bool()>& stopping) {
  const std::vector<std::uint32_t> held = with_twins(shards);
  std::unique_lock lock(mutex_);
  schedule_.start_batch(epoch, index, held);
  start_threads();
  changed_.notify_all();
  const auto over = [&] {
    return threads_.empty() ||
           (std::all_of(shards.begin(), shards.end(), [&](auto shard) { return schedule_.decided(shard); }) &&
            std::none_of(held.begin(), held.end(), [&](auto shard) { return schedule_.leaves(shard); }));
  };
  while (!over()) {
    if (stopping()) throw Error(ErrorCode::cancelled, "stopped while shards are fetched");
    changed_.wait_for(lock, kFillTurn);
    const unsigned width = width_.now();
    width_.waiting(store_.traffic().bytes, watch_.seconds());
    if (width_.now() == width) continue;
    start_threads();
    changed_.notify_all();  // those whose shard has its head wait for their turn
  }
}

void ShardFiller::after_batch(std::uint64_t epoch, std::uint64_t index, Event read) {
  const std::lock_guard lock(mutex_);
  read_ = std::move(read);
  schedule_.end_batch(epoch, index);
  changed_.notify_all();
}

void ShardFiller::give_up_batch(std::uint64_t epoch, std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  schedule_.give_up_batch(epoch, index);
  changed_.notify_all();
}

LoaderStats ShardFiller::stats() const {
  std::string problem = store_.problem();
  const std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  stats.passed_bytes = schedule_.passed_bytes();
  stats.transit_bytes = schedule_.transit_bytes();
  if (!problem.empty()) stats.storage_problem = std::move(problem);
  return stats;
}

void ShardFiller::work(const std::stop_token& stop) {
  name_thread("shard-fill");
  std::unique_lock lock(mutex_);
  std::optional<ShardSchedule::Job> job;
  // A job that was taken is carried out, also when the thread is stopped at that moment.
  const auto take = [&] { return !stop.stop_requested() && (job = next()).has_value(); };
  while (changed_.wait(lock, stop, take)) {
    const Event read = read_;
    const bool comes = job->kind != ShardSchedule::Job::Kind::leave;
    if (comes) prepare(job->shard, lock, stop);
    lock.unlock();
    const ShardSchedule::Result result = carry_out(*job, read, stop);
    lock.lock();
    done(*job, result);
    changed_.notify_all();
  }
}

std::optional<ShardSchedule::Job> ShardFiller::next() {
  const bool more = coming_ < width_.now() + kAhead;
  std::optional<ShardSchedule::Job> job = schedule_.next(more);
  if (!job && more && copying_ < width_.now()) width_.paused();
  if (job && job->kind != ShardSchedule::Job::Kind::leave) ++coming_;
  return job;
}

// Its head, and then the turn to be brought: as many shards as width_ says are, and a few others have
// their heads already, so that no time passes between two shards. What the head throws, it throws
// again where it is needed.
void ShardFiller::prepare(std::uint32_t shard, std::unique_lock<std::mutex>& lock,
                          const std::stop_token& stop) {
  lock.unlock();
  try {
    static_cast<void>(setup_.dataset.shard(shard));
  } catch (const std::exception&) {
  }
  lock.lock();
  changed_.wait(lock, stop, [&] { return copying_ < width_.now(); });
  ++copying_;
}

void ShardFiller::done(const ShardSchedule::Job& job, ShardSchedule::Result result) {
  schedule_.done(job, result);
  if (job.kind == ShardSchedule::Job::Kind::leave) return;
  --coming_;
  --copying_;
  if (result != ShardSchedule::Result::done) return;
  ++stats_.arrived_shards;
  stats_.arrived_bytes += setup_.dataset.info().shards[job.shard].size_bytes;
  width_.came(store_.traffic().bytes, watch_.seconds());
  start_threads();
}

// The batch that needs the shard gets the error, unless its samples can be read without the folders of this
// machine: then stats() has it.
ShardSchedule::Result ShardFiller::carry_out(const ShardSchedule::Job& job, const Event& read,
                                             const std::stop_token& stop) const noexcept {
  using Kind = ShardSchedule::Job::Kind;
  using Result = ShardSchedule::Result;
  try {
    if (job.kind == Kind::bring)
      return store_.fetch_to_cache(job.shard, stop) ? Result::done : Result::refused;
    if (job.kind == Kind::pass)
      return store_.fetch_to_transit(job.shard, stop) ? Result::done : Result::refused;
    wait_for_end(read);
    store_.evict(job.shard);
    return Result::done;
  } catch (const std::exception& error) {
    keep_problem(error.what(), stop);
    return Result::failed;
  }
}

void ShardFiller::keep_problem(const char* problem, const std::stop_token& stop) const noexcept {
  if (stop.stop_requested()) return;
  try {
    const std::lock_guard lock(mutex_);
    if (stats_.storage_problem.empty()) stats_.storage_problem = problem;
  } catch (const std::exception&) {  // no memory to say it
  }
}

}  // namespace shard
