#include "prefetch/shard_fetcher.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/thread_name.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr unsigned kAhead = 2;                       // shards whose heads are fetched before their turn
constexpr std::chrono::milliseconds kFetchTurn{20};  // between looks at whether to stop

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

// concat(data, data) has each shard twice.
std::map<std::uint32_t, std::vector<std::uint32_t>> aliases_of(const Dataset& data) {
  std::map<const ShardSummary*, std::vector<std::uint32_t>> numbers;
  for (std::uint32_t shard = 0; shard < data.info().shards.size(); ++shard)
    numbers[&data.source(shard).shard].push_back(shard);
  std::map<std::uint32_t, std::vector<std::uint32_t>> aliases;
  for (const auto& [summary, same] : numbers)
    if (same.size() > 1)
      for (const std::uint32_t shard : same) aliases[shard] = same;
  return aliases;
}

}  // namespace

ShardFetcher::ShardFetcher(const LoaderSetup& setup)
    : setup_(setup),
      store_(setup.dataset),
      aliases_(aliases_of(setup.dataset)),
      schedule_(setup.order, shard_bytes(setup.dataset), !setup.options.remote.cache.empty(),
                setup.options.remote.transit_bytes) {}

ShardFetcher::~ShardFetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  for (const std::uint32_t shard : schedule_.in_transit())
    static_cast<void>(carry_out({ShardSchedule::Job::Kind::evict, shard, {}}, read_, {}));
}

void ShardFetcher::start_threads() {
  if (ending_) return;
  try {
    while (threads_.size() < width_.now() + kAhead)
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  } catch (const std::system_error&) {  // with none, everything is read by range
  }
}

std::vector<std::uint32_t> ShardFetcher::with_aliases(const std::vector<std::uint32_t>& shards) const {
  std::vector<std::uint32_t> all = shards;
  for (const std::uint32_t shard : shards)
    if (const auto it = aliases_.find(shard); it != aliases_.end())
      all.insert(all.end(), it->second.begin(), it->second.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool ShardFetcher::ready(std::uint64_t epoch, std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  return schedule_.ready(epoch, index);
}

void ShardFetcher::before_batch(std::uint64_t epoch, std::uint64_t index,
                                const std::vector<std::uint32_t>& shards,
                                const std::function<bool()>& stopping) {
  const std::vector<std::uint32_t> held = with_aliases(shards);
  std::unique_lock lock(mutex_);
  schedule_.start_batch(epoch, index, held);
  start_threads();
  changed_.notify_all();
  const auto over = [&] {
    return threads_.empty() ||
           (std::all_of(shards.begin(), shards.end(),
                        [&](auto shard) { return schedule_.readable(shard); }) &&
            std::none_of(held.begin(), held.end(), [&](auto shard) { return schedule_.evicting(shard); }));
  };
  while (!over()) {
    if (stopping()) throw Error(ErrorCode::cancelled, "stopped while shards are fetched");
    changed_.wait_for(lock, kFetchTurn);
    const unsigned width = width_.now();
    width_.waiting(store_.traffic().bytes, watch_.seconds());
    if (width_.now() == width) continue;
    start_threads();
    changed_.notify_all();  // those that have the head of their shard wait for its turn
  }
}

void ShardFetcher::after_batch(std::uint64_t epoch, std::uint64_t index, Event read) {
  const std::lock_guard lock(mutex_);
  read_ = std::move(read);
  schedule_.end_batch(epoch, index);
  changed_.notify_all();
}

void ShardFetcher::abandon_batch(std::uint64_t epoch, std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  schedule_.abandon_batch(epoch, index);
  changed_.notify_all();
}

LoaderStats ShardFetcher::stats() const {
  std::string problem = store_.problem();
  const std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  stats.passed_bytes = schedule_.passed_bytes();
  stats.transit_bytes = schedule_.transit_bytes();
  if (!problem.empty()) stats.storage_problem = std::move(problem);
  return stats;
}

void ShardFetcher::work(const std::stop_token& stop) {
  name_thread("shard-fetch");
  std::unique_lock lock(mutex_);
  std::optional<ShardSchedule::Job> job;
  // A job that was taken is carried out, also when the thread is stopped at that moment.
  const auto take = [&] { return !stop.stop_requested() && (job = next()).has_value(); };
  while (changed_.wait(lock, stop, take)) {
    const Event read = read_;
    if (job->kind != ShardSchedule::Job::Kind::evict) prepare(job->shard, lock, stop);
    lock.unlock();
    const ShardSchedule::Result result = carry_out(*job, read, stop);
    lock.lock();
    done(*job, result);
    changed_.notify_all();
  }
}

std::optional<ShardSchedule::Job> ShardFetcher::next() {
  const bool more = taken_ < width_.now() + kAhead;
  std::optional<ShardSchedule::Job> job = schedule_.next(more);
  if (!job && more && fetching_ < width_.now()) width_.paused();
  if (job && job->kind != ShardSchedule::Job::Kind::evict) ++taken_;
  return job;
}

// Fetches the head of a shard, and waits for the shard's turn. width_ says how many are fetched at once, and
// kAhead others have their heads already, so that no time passes between two shards. What the head throws, it
// throws again where it is needed.
void ShardFetcher::prepare(std::uint32_t shard, std::unique_lock<std::mutex>& lock,
                           const std::stop_token& stop) {
  lock.unlock();
  try {
    static_cast<void>(setup_.dataset.shard(shard));
  } catch (const std::exception&) {
  }
  lock.lock();
  changed_.wait(lock, stop, [&] { return fetching_ < width_.now(); });
  ++fetching_;
}

void ShardFetcher::done(const ShardSchedule::Job& job, ShardSchedule::Result result) {
  schedule_.done(job, result);
  if (job.kind == ShardSchedule::Job::Kind::evict) return;
  --taken_;
  --fetching_;
  if (result != ShardSchedule::Result::done) return;
  ++stats_.arrived_shards;
  stats_.arrived_bytes += setup_.dataset.info().shards[job.shard].size_bytes;
  width_.arrived(store_.traffic().bytes, watch_.seconds());
  start_threads();
}

// The batch that needs the shard gets the error, unless its samples can be read without the folders of this
// machine: then stats() has it.
ShardSchedule::Result ShardFetcher::carry_out(const ShardSchedule::Job& job, const Event& read,
                                              const std::stop_token& stop) const noexcept {
  using Kind = ShardSchedule::Job::Kind;
  using Result = ShardSchedule::Result;
  try {
    if (job.kind == Kind::fetch_to_cache)
      return store_.fetch_to_cache(job.shard, stop) ? Result::done : Result::no_room;
    if (job.kind == Kind::fetch_to_transit)
      return store_.fetch_to_transit(job.shard, stop) ? Result::done : Result::no_room;
    wait_for_end(read);
    store_.evict(job.shard);
    return Result::done;
  } catch (const std::exception& error) {
    keep_problem(error.what(), stop);
    return Result::failed;
  }
}

void ShardFetcher::keep_problem(const char* problem, const std::stop_token& stop) const noexcept {
  if (stop.stop_requested()) return;
  try {
    const std::lock_guard lock(mutex_);
    if (stats_.storage_problem.empty()) stats_.storage_problem = problem;
  } catch (const std::exception&) {  // no memory to say it
  }
}

}  // namespace shard
