#include "prefetch/shard_schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shard {

namespace {

constexpr std::size_t kNowhere = ~std::size_t{0};
constexpr std::uint64_t kColdPart = 16;  // of the bytes of the first window's shards

}  // namespace

ShardSchedule::ShardSchedule(const Order& order, std::vector<std::uint64_t> shard_bytes, bool cache,
                             std::uint64_t transit_bytes)
    : order_(order), walks_(walks_shards(order.options())), cache_(cache), transit_bytes_(transit_bytes) {
  for (const std::uint64_t bytes : shard_bytes) shards_.push_back({bytes});
  const std::uint64_t all = std::accumulate(shard_bytes.begin(), shard_bytes.end(), std::uint64_t{0});
  batch_bytes_ = all / order.positions() * order.options().batch_size;
}

ShardSchedule::Plan ShardSchedule::plan(std::uint64_t epoch) const {
  Plan plan{epoch, order_.shards_of(epoch), order_.places(epoch, 0).last,
            std::vector<std::size_t>(shards_.size(), kNowhere)};
  for (std::size_t i = 0; i < plan.shards.size(); ++i) plan.places[plan.shards[i]] = i;
  return plan;
}

const ShardSchedule::Plan* ShardSchedule::plan_of(std::uint64_t epoch) const {
  for (const Plan& plan : plans_)
    if (plan.epoch == epoch) return &plan;
  return nullptr;
}

void ShardSchedule::start_over(Turn turn, std::size_t window_end) {
  plans_.clear();
  plans_.push_back(plan(turn.epoch));
  plans_.push_back(plan(turn.epoch + 1));
  cursor_ = now_ = turn;
  for (Shard& shard : shards_) shard.needed.reset();
  for (const std::uint32_t shard : std::exchange(passing_, {}))
    if (shards_[shard].batches == 0)
      let_go(shard);
    else
      passing_.push_back(shard);
  cold_bytes_ = 0;
  for (std::size_t place = turn.place; place < window_end; ++place) {
    const Shard& shard = shards_[plans_.front().shards[place]];
    if (shard.state != State::here) cold_bytes_ += shard.bytes / kColdPart;
  }
}

// What was to leave and is still here stays.
void ShardSchedule::hold(const Batch& batch, const std::vector<std::uint32_t>& shards) {
  started_.push_back({batch, shards});
  for (const std::uint32_t number : shards) {
    ++shards_[number].batches;
    const auto it = std::find(leaving_.begin(), leaving_.end(), number);
    if (it == leaving_.end()) continue;
    leaving_.erase(it);
    --leaving_jobs_;
    shards_[number].state = State::passing;
    passing_.push_back(number);
  }
}

void ShardSchedule::release(const Batch& batch) {
  const auto it = std::find_if(started_.begin(), started_.end(),
                               [&](const Started& started) { return started.batch == batch; });
  if (it == started_.end()) return;
  for (const std::uint32_t number : it->shards) --shards_[number].batches;
  started_.erase(it);
}

void ShardSchedule::start_batch(std::uint64_t epoch, std::uint64_t index,
                                const std::vector<std::uint32_t>& shards) {
  if (!walks_) return;
  hold({epoch, index}, shards);
  if (expected_ != Batch{epoch, index}) {
    const Order::Places places = order_.places(epoch, index);
    start_over({epoch, places.first}, places.last);
  } else if (plans_.front().epoch != epoch) {
    plans_.pop_front();
    plans_.push_back(plan(epoch + 1));
  }
  expected_ = index + 1 < order_.batches() ? Batch{epoch, index + 1} : Batch{epoch + 1, 0};
  cold_ = cold_bytes_ >= batch_bytes_;
  cold_bytes_ -= cold_ ? batch_bytes_ : 0;
}

ShardSchedule::Turn ShardSchedule::turn_after(std::uint64_t epoch, std::uint64_t index) const {
  if (index + 1 < order_.batches()) return {epoch, order_.places(epoch, index + 1).first};
  return {epoch + 1, 0};
}

void ShardSchedule::end_batch(std::uint64_t epoch, std::uint64_t index) {
  if (!walks_) return;
  release({epoch, index});
  now_ = std::max(now_, turn_after(epoch, index));
  for (std::size_t i = 0; i < passing_.size();) {
    const std::uint32_t shard = passing_[i];
    if (!is_over(shards_[shard])) {
      ++i;
      continue;
    }
    passing_[i] = passing_.back();
    passing_.pop_back();
    let_go(shard);
  }
}

// The batch after it is no longer the next one: what this one was to have used would never be over.
void ShardSchedule::give_up_batch(std::uint64_t epoch, std::uint64_t index) {
  if (!walks_) return;
  release({epoch, index});
  expected_.reset();
}

void ShardSchedule::let_go(std::uint32_t shard) {
  shards_[shard].state = State::leaving;
  leaving_.push_back(shard);
  ++leaving_jobs_;
}

ShardSchedule::Job ShardSchedule::start(Job::Kind kind, std::uint32_t shard, std::optional<Turn> turn) {
  shards_[shard].state = State::working;
  if (turn) shards_[shard].needed = turn;
  if (kind == Job::Kind::pass) held_ += shards_[shard].bytes;
  return {kind, shard, turn};
}

std::optional<ShardSchedule::Job> ShardSchedule::next(bool more) {
  if (!leaving_.empty()) {
    const std::uint32_t shard = leaving_.front();
    leaving_.pop_front();
    return Job{Job::Kind::leave, shard, shards_[shard].needed};
  }
  if (!more) return std::nullopt;
  if (walks_)
    if (const auto job = next_in_order()) return job;
  // Shards of other ranks and epochs, from another one in each rank: ranks of a node share the cache,
  // and so the work.
  const OrderOptions& options = order_.options();
  const auto first = static_cast<std::size_t>(shards_.size() * options.rank / options.world_size);
  while (cache_ && other_ < shards_.size()) {
    const auto shard = static_cast<std::uint32_t>((first + other_++) % shards_.size());
    if (shards_[shard].state == State::unknown) return start(Job::Kind::bring, shard, {});
  }
  return std::nullopt;
}

// The shard whose turn is next. Nothing: the plans end. Of the next epoch, only the first window is requested
// before it begins: it may be the last one.
std::optional<std::uint32_t> ShardSchedule::at_cursor() {
  cursor_ = std::max(cursor_, now_);
  const Plan* plan = plan_of(cursor_.epoch);
  if (plan != nullptr && cursor_.place >= plan->shards.size()) {
    cursor_ = {cursor_.epoch + 1, 0};
    plan = plan_of(cursor_.epoch);
  }
  if (plan == nullptr || plan->shards.empty()) return std::nullopt;
  if (cursor_.epoch > now_.epoch && cursor_.place >= plan->first_window) return std::nullopt;
  return plan->shards[cursor_.place];
}

std::optional<ShardSchedule::Job> ShardSchedule::next_in_order() {
  for (;; ++cursor_.place) {
    const std::optional<std::uint32_t> number = at_cursor();
    if (!number) return std::nullopt;
    Shard& shard = shards_[*number];
    if (shard.state == State::working || shard.state == State::passing || shard.state == State::leaving)
      shard.needed = cursor_;
    if (shard.state == State::unknown && !cache_) shard.state = State::outside;
    const bool pass = shard.state == State::outside && shard.bytes <= transit_bytes_;
    if (pass && !fits(shard)) return std::nullopt;
    if (!pass && shard.state != State::unknown) continue;
    const Job job = start(pass ? Job::Kind::pass : Job::Kind::bring, *number, cursor_);
    ++cursor_.place;
    return job;
  }
}

void ShardSchedule::done(const Job& job, Result result) {
  Shard& shard = shards_[job.shard];
  const auto request_again = [&](std::optional<Turn> turn) {
    if (turn) cursor_ = std::min(cursor_, *turn);
  };
  const auto gone = [&] {
    held_ -= shard.bytes;
    shard.state = State::outside;
    if (job.turn < shard.needed) request_again(shard.needed);
  };
  switch (job.kind) {
    case Job::Kind::leave:
      --leaving_jobs_;
      return gone();
    case Job::Kind::pass:
      if (result != Result::done) return gone();
      shard.state = State::passing;
      passed_ += shard.bytes;
      if (is_over(shard))
        let_go(job.shard);
      else
        passing_.push_back(job.shard);
      return;
    case Job::Kind::bring:
      if (result == Result::done) {
        shard.state = State::here;
      } else if (result == Result::refused) {
        shard.state = State::outside;
        request_again(job.turn ? job.turn : shard.needed);
      } else {
        shard.state = State::unknown;
        if (job.turn < shard.needed) request_again(shard.needed);
      }
  }
}

std::vector<std::uint32_t> ShardSchedule::in_transit() const {
  std::vector<std::uint32_t> shards = passing_;
  shards.insert(shards.end(), leaving_.begin(), leaving_.end());
  return shards;
}

// It is here, or nothing will bring it for this turn.
bool ShardSchedule::settled(std::uint32_t number, Turn turn) const {
  const Shard& shard = shards_[number];
  if (shard.state == State::here || shard.state == State::passing) return true;
  if (shard.state == State::working || shard.state == State::leaving) return false;
  return turn < std::max(cursor_, now_) || (shard.state == State::outside && shard.bytes > transit_bytes_);
}

// The next shard has no room, and will not have any before batches that are not started yet are over.
bool ShardSchedule::blocked() const {
  const Plan* const plan = plan_of(cursor_.epoch);
  if (plan == nullptr || cursor_.place >= plan->shards.size()) return false;
  const Shard& shard = shards_[plan->shards[cursor_.place]];
  return shard.state == State::outside && shard.bytes <= transit_bytes_ && !fits(shard) && leaving_jobs_ == 0;
}

bool ShardSchedule::decided(std::uint32_t shard) const {
  if (!walks_) return true;
  if (leaves(shard)) return false;
  if (cold_) return true;
  const std::size_t place = plans_.front().places[shard];
  return place == kNowhere || settled(shard, {plans_.front().epoch, place}) ||
         (shards_[shard].state != State::working && blocked());
}

bool ShardSchedule::ready(std::uint64_t epoch, std::uint64_t index) const {
  if (!walks_ || expected_ != Batch{epoch, index}) return true;
  const Order::Places places = order_.places(epoch, index);
  if (!(now_ < Turn{epoch, places.first})) return true;  // it needs the room of the oldest batch
  const Plan* const plan = plan_of(epoch);
  if (plan == nullptr) return true;
  for (std::size_t place = places.first; place < places.last; ++place)
    if (!settled(plan->shards[place], {epoch, place})) return false;
  return true;
}

}  // namespace shard
