#include "convert/engine/cached_samples.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/thread_name.hpp"
#include "base/text/quote.hpp"
#include "convert/engine/cached_rows.hpp"
#include "convert/engine/sample_logs.hpp"
#include "convert/engine/steps.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/folder_lock.hpp"
#include "format/dataset/shard_match.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCacheLook = std::chrono::milliseconds(250);  // between looks at what other processes do
constexpr auto kCacheRateOver = std::chrono::seconds(30);
// A run whose samples are nearly all found: each that is found counts 1, one that is not -kMissWeighs.
constexpr std::int64_t kMostFound = 1024;
constexpr std::int64_t kMissWeighs = 16;
constexpr std::int64_t kNearlyAll = 512;
constexpr std::size_t kKeptOfLogBytes = std::size_t{64}
                                        << 20U;  // of each thread, from one sample to the next

std::uint64_t log_key_of(const PlanRecord& record) {
  return xxh3(record.fingerprint + " " + record.source_digest);
}

}  // namespace

// What one process has of it.
class CachedSamples::Process {
 public:
  explicit Process(const CachedSamples& of)
      : pid(::getpid()),
        plan_(*of.plan_),
        options_(of.options_),
        record_(of.record_),
        logs_(options_.out, log_key_of(record_), plan_.list.inputs.size(), plan_.per_shard),
        locks_(options_.out / kPlanFile),
        finished_(plan_.shards()),
        rows_(plan_.shards()) {
    claim_.may_lack_space = true;  // then nothing is stored
    claim_folder(plan_, options_, record_, claim_);
    if (!claim_.missing.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is a finished data set that has lost {}: convert the images into it again, "
                              "with the same options, or give another folder",
                              quoted(options_.out), shard_name(claim_.missing.begin()->first)));
    if (claim_.complete) {
      if (!take_whole()) throw Error(ErrorCode::io, fmt::format("{} was removed", quoted(options_.out)));
    } else {
      if (!claim_.lack_of_space.empty()) fail(claim_.lack_of_space.c_str());
      look_around();
      if (claim_.other_times) require_same_images();
      start();
    }
  }

  ~Process() { stop(); }

  bool complete() const noexcept { return complete_; }

  bool find(std::uint64_t input, const Receiver& receiver) {
    const bool there = look_up(input, receiver);
    if (there) ++found_;
    std::int64_t score = score_;
    score_ = std::clamp<std::int64_t>(score + (there ? 1 : -kMissWeighs), 0, kMostFound);
    return there;
  }

  void store(std::uint64_t input, const CachedSample& sample) {
    ++decoded_;
    if (complete_ || has_problem_) return;
    try {
      logs_.append(input, serialize_sample(sample).pieces);
    } catch (const Error& error) {
      fail(error.what());
      return;
    }
    const std::uint64_t shard = input / plan_.per_shard;
    if (logs_.count(shard) == plan_.shard_inputs(shard)) wake_.notify_one();
  }

  Turns turns;

  CacheProgress progress() const {
    CacheProgress now;
    now.inputs = plan_.list.inputs.size();
    now.shards = plan_.shards();
    for (std::uint64_t shard = 0; shard < now.shards; ++shard) {
      now.finished_shards += finished_[shard] ? 1 : 0;
      now.stored += finished_[shard] ? plan_.shard_inputs(shard) : logs_.count(shard);
    }
    now.decoded = decoded_;
    now.decoded_for_shards = decoded_for_shards_;
    now.found = found_;
    now.complete = complete_;
    const std::lock_guard lock(mutex_);
    now.problem = problem_;
    if (rate_ > 0) now.seconds_left = static_cast<double>(now.inputs - now.stored) / rate_;
    if (now.stored == now.inputs) now.seconds_left = 0;
    return now;
  }

  void stop() noexcept {
    cancel_ = true;
    wake_.notify_all();
    const std::lock_guard lock(thread_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  const pid_t pid;

 private:
  // Which rows a finished shard has.
  struct FinishedRows {
    static constexpr std::uint32_t kReject = ~std::uint32_t{0};
    std::optional<ShardReader> reader;  // none, if all of its inputs are rejects
    std::vector<std::uint32_t> row_of;  // of each of its inputs
  };

  bool look_up(std::uint64_t input, const Receiver& receiver) {
    const std::uint64_t shard = input / plan_.per_shard;
    for (;;) {
      if (finished_[shard]) {
        const FinishedRows& there = rows(shard);
        const std::uint32_t row = there.row_of[input % plan_.per_shard];
        if (row == FinishedRows::kReject) return false;
        receiver.row(*there.reader, row);
        return true;
      }
      if (!logs_.has(input)) {
        logs_.catch_up();  // far less than it takes to make the sample
        if (!logs_.has(input)) return false;
      }
      thread_local std::vector<std::byte> bytes;
      if (bytes.capacity() > kKeptOfLogBytes) bytes = {};
      if (logs_.read(input, bytes))
        if (const std::optional<CachedSample> sample = parse_sample(bytes)) {
          receiver.sample(*sample);
          return true;
        }
      // Another process may have finished the shard, and given the space of the log back.
      if (!look_at(shard)) return false;
    }
  }

  // Whether the shard is finished.
  bool look_at(std::uint64_t shard) {
    if (!finished_[shard] && (finished_shard(options_.out, record_, shard).has_value() || is_whole()))
      finished_[shard] = true;
    return finished_[shard];
  }

  std::shared_ptr<const DatasetInfo> read_whole() const {
    auto info = std::make_shared<const DatasetInfo>(read_dataset_info(options_.out));
    require_same_plan(recorded_plan(*info, record_), record_, options_.out);
    return info;
  }

  // Whether the folder holds the whole data set. Errors: invalid_argument (it is another one meanwhile).
  bool is_whole() {
    {
      const std::lock_guard lock(rows_mutex_);
      if (whole_) return true;
    }
    if (!dataset_is_there(options_.out)) return false;
    std::shared_ptr<const DatasetInfo> info = read_whole();
    const std::lock_guard lock(rows_mutex_);
    whole_ = std::move(info);
    return true;
  }

  // For the thread that finishes shards, and before it is there.
  bool take_whole() {
    if (!is_whole()) return false;
    finish_all();
    return true;
  }

  // What the shard must be; rows_mutex_ is held. Nothing: it has no samples, and so no file.
  std::optional<ShardSummary> expected(std::uint64_t shard) {
    if (!whole_) {
      if (const std::optional<Receipt> receipt = finished_shard(options_.out, record_, shard))
        return receipt->shard.samples == 0 ? std::nullopt : std::optional(receipt->shard);
      whole_ = read_whole();  // its receipt has gone, because all are finished
    }
    for (const ShardSummary& of : whole_->shards)
      if (of.file == shard_name(shard)) return of;
    return std::nullopt;
  }

  const FinishedRows& rows(std::uint64_t shard) {
    const std::lock_guard lock(rows_mutex_);
    std::unique_ptr<const FinishedRows>& there = rows_[shard];
    if (there) return *there;
    FinishedRows read;
    if (const std::optional<ShardSummary> summary = expected(shard)) {
      read.reader = ShardReader::open(options_.out / shard_name(shard));
      if (const auto differs = shard_difference(*read.reader, &*summary, nullptr))
        throw Error(
            ErrorCode::corrupt,
            fmt::format("shard {} is not the one that was stored in this cache: its {} is {}, and was {}; "
                        "give another folder",
                        quoted(options_.out / shard_name(shard)), differs->what, differs->found,
                        differs->stated));
    }
    // Rejects are left out, and keys stay in their order.
    const std::uint64_t rows = read.reader ? read.reader->size() : 0;
    std::uint64_t row = 0;
    for (std::uint64_t i = 0; i < plan_.shard_inputs(shard); ++i) {
      const bool is_next =
          row < rows && read.reader->key(row) == plan_.list.inputs[shard * plan_.per_shard + i].key();
      read.row_of.push_back(is_next ? static_cast<std::uint32_t>(row++) : FinishedRows::kReject);
    }
    if (row != rows)
      throw Error(ErrorCode::corrupt, fmt::format("shard {} has samples of other images",
                                                  quoted(options_.out / shard_name(shard))));
    there = std::make_unique<const FinishedRows>(std::move(read));
    return *there;
  }

  // Of all that is stored.
  void require_same_images() {
    std::vector<StoredInput> stored = stored_inputs(plan_, options_, record_);
    std::vector<std::byte> bytes;
    for (std::uint64_t input = 0; input < plan_.list.inputs.size(); ++input) {
      if (!logs_.has(input) || !logs_.read(input, bytes)) continue;
      const std::optional<CachedSample> sample = parse_sample(bytes);
      if (sample && sample->digest) stored.push_back({input, *sample->digest});
    }
    require_same_inputs(plan_, options_, stored, {});
  }

  void start() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() noexcept {
    name_thread("shard-cache");
    while (!cancel_ && !complete_) {
      try {
        look_around();
        measure();
        if (!has_problem_) finish_shards();
      } catch (const ShardPostponed& error) {
        postpone(error);
      } catch (const Error& error) {
        if (!cancel_) fail(error.what());
      } catch (const std::exception& error) {
        fail(error.what());
      }
      std::unique_lock lock(mutex_);
      if (!cancel_ && !complete_) wake_.wait_for(lock, kCacheLook);
    }
  }

  void look_around() {
    if (take_whole()) return;
    logs_.refresh();
    for (const std::uint64_t shard : receipts_in(options_.out))
      if (shard < plan_.shards() && !finished_[shard] && look_at(shard)) logs_.drop(shard);
  }

  void finish_all() {
    for (std::atomic<bool>& shard : finished_) shard = true;
    complete_ = true;
    claim_.folder.unlock();  // from now on it is any data set
  }

  void measure() {
    const CacheProgress now = progress();
    const std::lock_guard lock(mutex_);
    const Clock::time_point time = Clock::now();
    seen_.emplace_back(time, now.stored);
    while (seen_.size() > 2 && time - seen_.front().first > kCacheRateOver) seen_.pop_front();
    const double seconds = std::chrono::duration<double>(time - seen_.front().first).count();
    const std::uint64_t more = now.stored - std::min(now.stored, seen_.front().second);
    rate_ = seconds > 0 ? static_cast<double>(more) / seconds : 0;
  }

  bool is_due(std::uint64_t shard) const {
    const std::uint64_t inputs = plan_.shard_inputs(shard);
    const std::uint64_t there = logs_.count(shard);
    const auto all = static_cast<std::int64_t>(plan_.list.inputs.size());
    const bool finds_all = score_ >= std::min(kNearlyAll, std::max<std::int64_t>(all / 2, 1));
    return there == inputs || (finds_all && there * 10 >= inputs * 9);
  }

  // A shard that nobody else works at, locked.
  std::optional<std::uint64_t> take_due() {
    const std::lock_guard guard(taken_mutex_);
    for (std::uint64_t shard = 0; shard < plan_.shards(); ++shard) {
      if (finished_[shard] || taken_.contains(shard) || postponed_.contains(shard) || !is_due(shard))
        continue;
      const LockResult lock = locks_.try_lock(shard);
      if (lock == LockResult::busy) continue;
      taken_.insert(shard);
      if (!look_at(shard)) return shard;
      give_back(shard);
    }
    return std::nullopt;
  }

  // With taken_mutex_ held.
  void give_back(std::uint64_t shard) noexcept {
    if (taken_.erase(shard) != 0) locks_.unlock(shard);
  }

  bool all_finished() const {
    return std::all_of(finished_.begin(), finished_.end(), [](const auto& shard) { return shard.load(); });
  }

  void finish_shards() {
    if (const std::optional<std::uint64_t> first = take_due()) {
      std::optional<std::uint64_t> next = first;
      CachedRows source(
          plan_, options_, logs_, [&] { return next ? std::exchange(next, std::nullopt) : take_due(); },
          [this](std::uint64_t shard) {
            finished_[shard] = true;
            logs_.drop(shard);
            const std::lock_guard lock(taken_mutex_);
            give_back(shard);
          },
          decoded_for_shards_, &cancel_);
      Hooks hooks;
      hooks.cancel = &cancel_;
      Summary unused;
      try {
        convert_rows(source, options_, record_, hooks, unused);
      } catch (...) {
        const std::lock_guard lock(taken_mutex_);
        while (!taken_.empty()) give_back(*taken_.begin());
        throw;
      }
    }
    if (!all_finished()) return;
    Summary unused;
    if (!publish_dataset(plan_, options_, record_, unused) && !dataset_is_there(options_.out)) return;
    remove_journal(options_.out);
    static_cast<void>(take_whole());
  }

  // The others are finished all the same.
  void postpone(const ShardPostponed& error) {
    {
      const std::lock_guard guard(taken_mutex_);
      postponed_.insert(error.shard());
    }
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = error.what();
  }

  void fail(const char* why) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = why;
    has_problem_ = true;
  }

  const Plan& plan_;
  const Options& options_;
  const PlanRecord& record_;
  Claim claim_;
  SampleLogs logs_;
  std::mutex taken_mutex_;  // guards the next three
  ShardLocks locks_;
  std::set<std::uint64_t> taken_;
  std::set<std::uint64_t> postponed_;  // by this process: an image of theirs could not be read
  std::vector<std::atomic<bool>> finished_;
  std::atomic<bool> complete_{false};
  std::atomic<bool> cancel_{false};
  std::atomic<bool> has_problem_{false};
  std::atomic<std::uint64_t> decoded_{0};
  std::atomic<std::uint64_t> decoded_for_shards_{0};
  std::atomic<std::uint64_t> found_{0};
  std::atomic<std::int64_t> score_{0};
  std::mutex rows_mutex_;  // guards the next two
  std::vector<std::unique_ptr<const FinishedRows>> rows_;
  std::shared_ptr<const DatasetInfo> whole_;  // of the finished data set
  mutable std::mutex mutex_;                  // guards the next three
  std::string problem_;
  std::deque<std::pair<Clock::time_point, std::uint64_t>> seen_;
  double rate_ = 0;
  std::condition_variable wake_;
  std::mutex thread_mutex_;  // for stop()
  std::thread thread_;
};

CachedSamples::CachedSamples(std::shared_ptr<const Plan> plan, const Options& options,
                             const PlanRecord& record)
    : plan_(std::move(plan)), options_(options), record_(record) {
  process_ = new Process(*this);
}

CachedSamples::~CachedSamples() {
  Process* const process = process_.load(std::memory_order_acquire);
  if (process != nullptr && process->pid == ::getpid()) delete process;
}

CachedSamples::Process& CachedSamples::process() const {
  Process* there = process_.load(std::memory_order_acquire);
  while (there->pid != ::getpid()) {
    auto fresh = std::make_unique<Process>(*this);
    if (process_.compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel))
      there = fresh.release();  // what a parent had is its own, and stays where it is
  }
  return *there;
}

Turns& CachedSamples::turns() const { return process().turns; }

bool CachedSamples::complete() const { return process().complete(); }

bool CachedSamples::find(std::uint64_t input, const Receiver& receiver) const {
  return process().find(input, receiver);
}

void CachedSamples::store(std::uint64_t input, const CachedSample& sample) const {
  process().store(input, sample);
}

CacheProgress CachedSamples::progress() const { return process().progress(); }

void CachedSamples::stop() noexcept {
  Process* const process = process_.load(std::memory_order_acquire);
  if (process->pid == ::getpid()) process->stop();
}

}  // namespace shard::convert
