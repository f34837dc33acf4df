#include "convert/engine/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "convert/plan/advice.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {
constexpr std::size_t kOpenPerFilling = 2;  // one being filled, one being published
constexpr std::uint64_t kMostWaitingBytes = std::uint64_t{1} << 30U;
constexpr auto kPoll = std::chrono::milliseconds(100);  // a waiting thread sees a cancel after at most this
}  // namespace

Scheduler::Scheduler(RowSource& source, const Options& options, const PlanRecord& record, const Hooks& hooks)
    : source_(source),
      options_(options),
      record_(record),
      hooks_(hooks),
      window_(std::uint64_t{32} * options.threads()),
      most_filling_(source.most_filling()) {
  publisher_ = std::thread([this] { publish_loop(); });  // last: it must be joined
}

Scheduler::~Scheduler() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  may_publish_.notify_all();
  if (publisher_.joinable()) publisher_.join();
}

bool Scheduler::stopped() const noexcept {
  return stop_ || (hooks_.cancel != nullptr && hooks_.cancel->load(std::memory_order_relaxed));
}

bool Scheduler::wait_for_room() {
  std::unique_lock lock(mutex_);
  const auto room = [&] {
    std::uint64_t waiting = 0;
    for (const auto& job : open_) waiting += job->writer.waiting_bytes();
    const bool near =
        active_.empty() || (tickets_ - *active_.begin() < window_ && waiting < kMostWaitingBytes);
    return near && (!filling_.empty() || open_.size() < kOpenPerFilling * most_filling_);
  };
  while (!stopped() && !all_handed_out_ && !room()) may_take_.wait_for(lock, kPoll);
  return !stopped() && !all_handed_out_;
}

bool Scheduler::open_shard() {
  std::optional<ShardToFill> shard = source_.next_shard();
  if (!shard) return false;
  // If there is a shard without a receipt, an earlier run was stopped between the two. It stays until this
  // run replaces it with the same bytes.
  shard->options.may_exist = true;
  auto writer = ShardWriter::create(options_.out / shard_name(shard->number), shard->rows, shard->options);
  auto job = std::make_unique<ShardJob>(std::move(*shard), std::move(writer));
  filling_.push_back(job.get());
  std::lock_guard lock(mutex_);
  open_.push_back(std::move(job));
  return true;
}

ShardJob* Scheduler::shard_to_fill() {
  const auto may_open = [&] {
    if (all_opened_ || filling_.size() >= most_filling_) return false;
    const std::lock_guard lock(mutex_);
    return open_.size() < kOpenPerFilling * most_filling_;
  };
  if (may_open() && !open_shard()) all_opened_ = true;
  if (filling_.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  return *std::min_element(filling_.begin(), filling_.end(), [](const ShardJob* a, const ShardJob* b) {
    return a->taken - a->done < b->taken - b->done;
  });
}

void Scheduler::end_shard(ShardJob& job) {
  {
    std::lock_guard lock(mutex_);
    if (stopped()) return;
  }
  for (std::uint64_t row = job.taken; row < job.rows; ++row) job.writer.skip(row);
  std::erase(filling_, &job);
  std::lock_guard lock(mutex_);
  job.ended = true;
  may_publish_.notify_all();
}

std::optional<Item> Scheduler::hand_out(ShardJob& job, InputRow& input, double waited) {
  std::lock_guard lock(mutex_);
  Item item{&job, job.taken++, &input, tickets_++};
  active_.insert(item.ticket);
  wait_seconds_ += waited;
  if (job.taken == job.rows) {
    job.ended = true;
    std::erase(filling_, &job);
  }
  return item;
}

std::optional<Item> Scheduler::next(RowReader& reader) {
  const Stopwatch waiting;
  std::lock_guard turn(turn_);
  while (wait_for_room()) {
    ShardJob* const job = shard_to_fill();
    if (job == nullptr) break;
    InputRow& input = job->inputs.emplace_back();
    if (reader.take(job->number, job->taken, input)) return hand_out(*job, input, waiting.seconds());
    job->inputs.pop_back();
    end_shard(*job);
  }
  std::lock_guard lock(mutex_);
  all_handed_out_ = true;
  may_publish_.notify_all();
  return std::nullopt;
}

void Scheduler::done(const Item& item) {
  std::lock_guard lock(mutex_);
  const bool was_oldest = *active_.begin() == item.ticket;
  active_.erase(item.ticket);
  ++item.job->done;
  if (item.job->full()) may_publish_.notify_all();
  if (was_oldest) may_take_.notify_all();
}

void Scheduler::fail(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_ = true;
  }
  may_take_.notify_all();
  may_publish_.notify_all();
  source_.stop();
}

void Scheduler::publish(ShardJob& job) {
  if (job.expected != nullptr) {
    publish_expected(job);
  } else {
    Receipt receipt;
    if (job.stored > 0)
      receipt.shard = job.writer.publish();
    else
      receipt.shard.file = shard_name(job.number);
    std::sort(job.rejects.begin(), job.rejects.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    receipt.warnings = job.warnings;
    receipt.jpeg = job.jpeg;
    for (auto& [row, reject] : job.rejects) receipt.rejects.push_back(std::move(reject));
    for (const InputRow& input : job.inputs) receipt.inputs += serialize_row(input);
    publish_file(receipt_path(options_.out, job.number), serialize_receipt(receipt, record_, job.number));
  }
  if (hooks_.published && job.stored > 0) hooks_.published(shard_name(job.number));
}

void Scheduler::publish_expected(ShardJob& job) {
  try {
    if (job.stored == 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("every input of {} is rejected now", quoted(shard_name(job.number))));
    job.writer.publish(job.expected);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    throw Error(ErrorCode::corrupt, fmt::format("{}: the inputs are not those of the data set; {}",
                                                error.what(), kAdviseForLostShard));
  }
}

// In order, so that the shards of a run that is stopped are the first ones.
void Scheduler::publish_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto full = [&] { return !open_.empty() && open_.front()->full(); };
    may_publish_.wait(lock, [&] { return stopped() || full() || (all_handed_out_ && open_.empty()); });
    if (stopped() || !full()) return;
    ShardJob& job = *open_.front();
    lock.unlock();
    const Stopwatch watch;
    try {
      publish(job);
      source_.published(job.number);
    } catch (...) {
      fail(std::current_exception());
      return;
    }
    lock.lock();
    publish_seconds_ += watch.seconds();
    ++published_;
    open_.pop_front();
    may_take_.notify_all();
  }
}

void Scheduler::finish() {
  if (publisher_.joinable()) publisher_.join();
  if (error_) std::rethrow_exception(error_);
  if (stopped()) throw Error(ErrorCode::cancelled, "interrupted");
}

}  // namespace shard::convert
