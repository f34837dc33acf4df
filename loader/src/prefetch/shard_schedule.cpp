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
    : order_(order), walks_(walks_shards(order.options())), cache_(cache), transit_capacity_(transit_bytes) {
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
  for (const std::uint32_t shard : std::exchange(in_transit_, {}))
    if (shards_[shard].batches == 0)
      evict(shard);
    else
      in_transit_.push_back(shard);
  cold_bytes_ = 0;
  for (std::size_t place = turn.place; place < window_end; ++place) {
    const Shard& shard = shards_[plans_.front().shards[place]];
    if (shard.state != State::cached) cold_bytes_ += shard.bytes / kColdPart;
  }
}

// What was to be evicted and is still in transit stays.
void ShardSchedule::hold(const Batch& batch, const std::vector<std::uint32_t>& shards) {
  started_.push_back({batch, shards});
  for (const std::uint32_t number : shards) {
    ++shards_[number].batches;
    const auto it = std::find(to_evict_.begin(), to_evict_.end(), number);
    if (it == to_evict_.end()) continue;
    to_evict_.erase(it);
    --evictions_;
    shards_[number].state = State::in_transit;
    in_transit_.push_back(number);
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
  for (std::size_t i = 0; i < in_transit_.size();) {
    const std::uint32_t shard = in_transit_[i];
    if (!is_over(shards_[shard])) {
      ++i;
      continue;
    }
    in_transit_[i] = in_transit_.back();
    in_transit_.pop_back();
    evict(shard);
  }
}

// The batch after it is no longer the next one: what this one was to have used would never be over.
void ShardSchedule::abandon_batch(std::uint64_t epoch, std::uint64_t index) {
  if (!walks_) return;
  release({epoch, index});
  expected_.reset();
}

void ShardSchedule::evict(std::uint32_t shard) {
  shards_[shard].state = State::evicting;
  to_evict_.push_back(shard);
  ++evictions_;
}

ShardSchedule::Job ShardSchedule::fetch(Job::Kind kind, std::uint32_t shard, std::optional<Turn> turn) {
  shards_[shard].state = State::fetching;
  if (turn) shards_[shard].needed = turn;
  if (kind == Job::Kind::fetch_to_transit) transit_bytes_ += shards_[shard].bytes;
  return {kind, shard, turn};
}

std::optional<ShardSchedule::Job> ShardSchedule::next(bool fetches) {
  if (!to_evict_.empty()) {
    const std::uint32_t shard = to_evict_.front();
    to_evict_.pop_front();
    return Job{Job::Kind::evict, shard, shards_[shard].needed};
  }
  if (!fetches) return std::nullopt;
  if (walks_)
    if (const auto job = next_in_order()) return job;
  // Shards of other ranks and epochs, from another one in each rank: ranks of a node share the cache,
  // and so the work.
  const OrderOptions& options = order_.options();
  const auto first = static_cast<std::size_t>(shards_.size() * options.rank / options.world_size);
  while (cache_ && other_ < shards_.size()) {
    const auto shard = static_cast<std::uint32_t>((first + other_++) % shards_.size());
    if (shards_[shard].state == State::unknown) return fetch(Job::Kind::fetch_to_cache, shard, {});
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
    if (shard.state == State::fetching || shard.state == State::in_transit || shard.state == State::evicting)
      shard.needed = cursor_;
    if (shard.state == State::unknown && !cache_) shard.state = State::uncached;
    const bool to_transit = shard.state == State::uncached && shard.bytes <= transit_capacity_;
    if (to_transit && !fits(shard)) return std::nullopt;
    if (!to_transit && shard.state != State::unknown) continue;
    const Job job =
        fetch(to_transit ? Job::Kind::fetch_to_transit : Job::Kind::fetch_to_cache, *number, cursor_);
    ++cursor_.place;
    return job;
  }
}

void ShardSchedule::done(const Job& job, Result result) {
  Shard& shard = shards_[job.shard];
  const auto request_again = [&](std::optional<Turn> turn) {
    if (turn) cursor_ = std::min(cursor_, *turn);
  };
  const auto free_room = [&] {
    transit_bytes_ -= shard.bytes;
    shard.state = State::uncached;
    if (job.turn < shard.needed) request_again(shard.needed);
  };
  switch (job.kind) {
    case Job::Kind::evict:
      --evictions_;
      return free_room();
    case Job::Kind::fetch_to_transit:
      if (result != Result::done) return free_room();
      shard.state = State::in_transit;
      passed_bytes_ += shard.bytes;
      if (is_over(shard))
        evict(job.shard);
      else
        in_transit_.push_back(job.shard);
      return;
    case Job::Kind::fetch_to_cache:
      if (result == Result::done) {
        shard.state = State::cached;
      } else if (result == Result::no_room) {
        shard.state = State::uncached;
        request_again(job.turn ? job.turn : shard.needed);
      } else {
        shard.state = State::unknown;
        if (job.turn < shard.needed) request_again(shard.needed);
      }
  }
}

std::vector<std::uint32_t> ShardSchedule::in_transit() const {
  std::vector<std::uint32_t> shards = in_transit_;
  shards.insert(shards.end(), to_evict_.begin(), to_evict_.end());
  return shards;
}

// It is cached or in transit, or nothing will fetch it for this turn.
bool ShardSchedule::settled(std::uint32_t number, Turn turn) const {
  const Shard& shard = shards_[number];
  if (shard.state == State::cached || shard.state == State::in_transit) return true;
  if (shard.state == State::fetching || shard.state == State::evicting) return false;
  return turn < std::max(cursor_, now_) ||
         (shard.state == State::uncached && shard.bytes > transit_capacity_);
}

// The next shard has no room, and will not have any before batches that are not started yet are over.
bool ShardSchedule::blocked() const {
  const Plan* const plan = plan_of(cursor_.epoch);
  if (plan == nullptr || cursor_.place >= plan->shards.size()) return false;
  const Shard& shard = shards_[plan->shards[cursor_.place]];
  return shard.state == State::uncached && shard.bytes <= transit_capacity_ && !fits(shard) &&
         evictions_ == 0;
}

bool ShardSchedule::readable(std::uint32_t shard) const {
  if (!walks_) return true;
  if (evicting(shard)) return false;
  if (cold_) return true;
  const std::size_t place = plans_.front().places[shard];
  return place == kNowhere || settled(shard, {plans_.front().epoch, place}) ||
         (shards_[shard].state != State::fetching && blocked());
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
