#include "convert/engine/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/text/quote.hpp"
#include "convert/plan/advice.hpp"
#include "convert/publish/claim.hpp"
#include "convert/publish/input_table.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::size_t kShardsInFlight = 2;              // one being filled, one being published
constexpr auto kPoll = std::chrono::milliseconds(100);  // a waiting thread sees a cancel after at most this
}  // namespace

Scheduler::Scheduler(const Plan& plan, const Options& options, const PlanRecord& record,
                     const ShardWriterOptions& writer, std::vector<std::uint64_t> todo,
                     const std::map<std::uint64_t, ShardSummary>& missing, bool claim, const Hooks& hooks)
    : plan_(plan),
      options_(options),
      record_(record),
      writer_options_(writer),
      todo_(claim ? std::vector<std::uint64_t>() : todo),
      missing_(missing),
      hooks_(hooks),
      window_(std::uint64_t{32} * options.threads()) {
  if (claim)
    claims_.emplace(
        options.out, options.out / (missing.empty() ? kPlanFile : kDatasetFile), std::move(todo),
        [this](std::uint64_t shard) { return is_finished(shard); },
        [this](std::uint64_t shard) { count_resumed(shard); });
  publisher_ = std::thread([this] { publish_loop(); });  // last: it must be joined
}

Scheduler::~Scheduler() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  may_open_.notify_all();
  may_publish_.notify_all();
  if (publisher_.joinable()) publisher_.join();
}

bool Scheduler::stopped() const noexcept {
  return hooks_.cancel != nullptr && hooks_.cancel->load(std::memory_order_relaxed);
}

bool Scheduler::ends() {
  const std::lock_guard lock(mutex_);
  return stop_ || stopped();
}

void Scheduler::count_resumed(std::uint64_t shard) {
  if (hooks_.counters != nullptr) hooks_.counters->resumed += plan_.shard_inputs(shard);
}

bool Scheduler::is_finished(std::uint64_t shard) const {
  if (missing_.empty())
    // In this order: receipts are removed after dataset.json was published.
    return finished_shard(options_.out, record_, shard).has_value() || dataset_is_there(options_.out);
  std::error_code error;
  const auto size = std::filesystem::file_size(options_.out / shard_name(shard), error);
  return !error && size == missing_.at(shard).size_bytes;
}

bool Scheduler::find_claimed() {
  std::uint64_t shard = 0;
  switch (claims_->take(shard)) {
    case ShardClaims::Found::shard:
      next_shard_ = shard;
      break;
    case ShardClaims::Found::wait:
      break;
    case ShardClaims::Found::none:
      out_of_shards_ = true;
  }
  return next_shard_.has_value();
}

// If locks do not work, or if ranks overlap, another process may have finished a shard, or all of them.
bool Scheduler::find_shard() {
  if (next_shard_) return true;
  if (out_of_shards_) return false;
  if (claims_) return find_claimed();
  for (; todo_next_ < todo_.size(); ++todo_next_) {
    const std::uint64_t shard = todo_[todo_next_];
    if (missing_.empty() && dataset_is_there(options_.out)) break;
    if (!missing_.empty() || !finished_shard(options_.out, record_, shard)) {
      next_shard_ = todo_[todo_next_++];
      return true;
    }
    count_resumed(shard);
  }
  out_of_shards_ = true;
  return false;
}

void Scheduler::open_next_shard() {
  const std::uint64_t shard = *next_shard_;
  next_shard_.reset();
  const std::uint64_t count = plan_.shard_inputs(shard);
  ShardWriterOptions writer_options = writer_options_;
  // If there is a shard without a receipt, an earlier run was stopped between the two. It stays until this
  // run replaces it with the same bytes.
  writer_options.may_exist = true;
  for (std::uint64_t i = 0; i < count; ++i)  // exact, so that no row has to move when the head is written
    writer_options.planned_key_bytes += plan_.list.inputs[shard * plan_.per_shard + i].key().size();
  writer_options.planned_rows = {count};
  for (const ColumnTable& column : plan_.columns)
    writer_options.planned_rows.push_back(column.row_count(shard * plan_.per_shard, count));
  auto writer = ShardWriter::create(options_.out / shard_name(shard), count, std::move(writer_options));
  open_.push_back(std::make_unique<ShardJob>(std::move(writer)));
  current_ = open_.back().get();
  current_->shard = shard;
  current_->first = shard * plan_.per_shard;
  current_->count = count;
  current_->left = count;
  current_->digests.resize(count);
  current_next_ = 0;
}

std::optional<Item> Scheduler::next() {
  std::unique_lock lock(mutex_);
  const auto begin = Clock::now();
  bool waited = false;
  for (;;) {
    if (stop_ || stopped()) return std::nullopt;
    const bool needs_shard = current_ == nullptr || current_next_ == current_->count;
    const bool may_open = open_.size() < kShardsInFlight;
    const bool near = active_.empty() || tickets_ - *active_.begin() < window_;
    // A shard is claimed when it can be opened, not before.
    const bool found = !needs_shard || ((may_open || !claims_) && find_shard());
    if (needs_shard && !found && out_of_shards_) {
      all_handed_out_ = true;
      may_publish_.notify_all();
      return std::nullopt;
    }
    if (found && (!needs_shard || may_open) && near) break;
    waited = true;
    may_open_.wait_for(lock, kPoll);
  }
  if (waited)
    wait_nanoseconds_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  if (current_ == nullptr || current_next_ == current_->count) open_next_shard();
  const std::uint64_t ticket = tickets_++;
  active_.insert(ticket);
  return Item{current_, current_->first + current_next_++, ticket};
}

void Scheduler::done(const Item& item) {
  std::lock_guard lock(mutex_);
  const bool was_oldest = *active_.begin() == item.ticket;
  active_.erase(item.ticket);
  if (--item.job->left == 0) {
    if (current_ == item.job) {
      current_ = nullptr;
      current_next_ = 0;
    }
    full_.push_back(item.job);
    may_publish_.notify_all();
  }
  if (was_oldest) may_open_.notify_all();
}

void Scheduler::fail(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_ = true;
  }
  may_open_.notify_all();
  may_publish_.notify_all();
}

void Scheduler::publish(ShardJob& job) {
  if (!missing_.empty()) {
    publish_missing(job);
    return announce(job);
  }
  Receipt receipt;
  if (job.stored > 0)
    receipt.shard = job.writer.publish();
  else
    receipt.shard.file = shard_name(job.shard);
  std::sort(job.rejects.begin(), job.rejects.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  receipt.warnings = job.warnings;
  for (auto& [index, reject] : job.rejects) receipt.rejects.push_back(std::move(reject));
  for (std::uint64_t i = 0; i < job.count; ++i)
    receipt.inputs += serialize_row({job.first + i, plan_.list.inputs[job.first + i].key(),
                                     plan_.size_of(job.first + i), job.digests[i]});
  publish_file(receipt_path(options_.out, job.shard), serialize_receipt(receipt, record_, job.shard));
  announce(job);
}

void Scheduler::announce(const ShardJob& job) const {
  if (hooks_.published && job.stored > 0) hooks_.published(shard_name(job.shard));
}

void Scheduler::publish_missing(ShardJob& job) {
  try {
    if (job.stored == 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("every input of {} is rejected now", quoted(shard_name(job.shard))));
    job.writer.publish(&missing_.at(job.shard));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    throw Error(ErrorCode::corrupt, fmt::format("{}: the inputs are not those of the data set; {}",
                                                error.what(), kAdviseForLostShard));
  }
}

void Scheduler::publish_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (full_.empty()) {
      if (stop_ || stopped() || (all_handed_out_ && open_.empty())) return;
      may_publish_.wait_for(lock, kPoll);
    }
    if (stop_ || stopped()) return;
    ShardJob* job = full_.front();
    full_.pop_front();
    lock.unlock();
    const auto begin = Clock::now();
    std::exception_ptr error;
    try {
      publish(*job);
    } catch (...) {
      error = std::current_exception();
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (error) fail(error);
    lock.lock();
    publish_seconds_ += took.count();
    published_ += error ? 0 : 1;
    if (claims_) claims_->release(job->shard);
    std::erase_if(open_, [&](const auto& open) { return open.get() == job; });
    may_open_.notify_all();
  }
}

void Scheduler::finish() {
  if (publisher_.joinable()) publisher_.join();
  if (error_) std::rethrow_exception(error_);
  if (stopped()) throw Error(ErrorCode::cancelled, "interrupted");
}

}  // namespace shard::convert
