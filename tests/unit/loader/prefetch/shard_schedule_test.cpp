#include "prefetch/shard_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace shard {
namespace {

using Job = ShardSchedule::Job;
using Kind = Job::Kind;
using Result = ShardSchedule::Result;

constexpr std::uint64_t kBytes = 100;  // of a shard
constexpr std::uint64_t kSamples = 10;

OrderOptions options(OrderMode mode, std::uint32_t window = 2) {
  OrderOptions made;
  made.order = mode;
  made.window_shards = window;
  made.batch_size = 4;
  made.tail = Tail::short_;
  made.seed = 5;
  return made;
}

// Carries out every job at once. The cache has room for some shards, chosen by whoever comes first.
struct Machine {
  Order order;
  ShardSchedule schedule;
  std::size_t room;
  std::set<std::uint32_t> cached{}, in_transit{};
  std::size_t fetched = 0, most_held = 0;

  std::vector<std::uint64_t> samples;  // of each shard

  Machine(std::size_t shards, const OrderOptions& with, std::size_t cache_shards, std::size_t transit_shards)
      : Machine(std::vector<std::uint64_t>(shards, kSamples), with, cache_shards, transit_shards) {}
  Machine(const std::vector<std::uint64_t>& samples_of_shards, const OrderOptions& with,
          std::size_t cache_shards, std::size_t transit_shards)
      : order(samples_of_shards, with),
        schedule(order, std::vector<std::uint64_t>(samples_of_shards.size(), kBytes), cache_shards > 0,
                 transit_shards * kBytes),
        room(cache_shards),
        samples(samples_of_shards) {}

  Result carry_out(const Job& job) {
    if (job.kind == Kind::fetch_to_cache) {
      if (cached.size() == room) return Result::no_room;
      ++fetched;
      cached.insert(job.shard);
    } else if (job.kind == Kind::fetch_to_transit) {
      EXPECT_FALSE(cached.contains(job.shard));
      ++fetched;
      EXPECT_TRUE(in_transit.insert(job.shard).second);
    } else {
      EXPECT_EQ(in_transit.erase(job.shard), 1U);
    }
    return Result::done;
  }
  void work() {
    while (const auto job = schedule.next()) schedule.done(*job, carry_out(*job));
    EXPECT_EQ(schedule.transit_bytes(), in_transit.size() * kBytes);
    most_held = std::max(most_held, in_transit.size());
  }
  std::set<std::uint32_t> shards_of(std::uint64_t epoch, std::uint64_t index) const {
    BatchIndices batch;
    order.batch(epoch, index, batch);
    std::set<std::uint32_t> shards;
    for (std::uint64_t sample : batch.samples) {
      std::uint32_t shard = 0;
      for (; sample >= samples[shard]; ++shard) sample -= samples[shard];
      shards.insert(shard);
    }
    return shards;
  }
  void start(std::uint64_t epoch, std::uint64_t index) {
    const std::set<std::uint32_t> shards = shards_of(epoch, index);
    schedule.start_batch(epoch, index, {shards.begin(), shards.end()});
  }
  // Returns how many of the batch's shards are read by range.
  std::size_t batch(std::uint64_t epoch, std::uint64_t index) {
    start(epoch, index);
    work();
    std::size_t missing = 0;
    for (const std::uint32_t shard : shards_of(epoch, index)) {
      EXPECT_TRUE(schedule.readable(shard)) << "nothing would ever fetch it";
      missing += cached.contains(shard) || in_transit.contains(shard) ? 0 : 1;
    }
    schedule.end_batch(epoch, index);
    work();
    return missing;
  }
  std::size_t epoch(std::uint64_t number) {
    std::size_t missing = 0;
    for (std::uint64_t i = 0; i < order.batches(); ++i) missing += batch(number, i);
    return missing;
  }
};

TEST(ShardSchedule, FetchesEachShardThatDoesNotFitOnceInAnEpoch) {
  for (const OrderMode mode : {OrderMode::sequential, OrderMode::windowed})
    for (const std::size_t cache : {0U, 1U, 10U, 19U, 20U}) {
      Machine machine(20, options(mode), cache, 4);
      std::size_t before = 0;
      for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
        EXPECT_EQ(machine.epoch(epoch), 0U) << "every shard was fetched in time";
        // Some of the next epoch are fetched already. What both epochs need within the area's room is
        // fetched once for both.
        const std::size_t ahead = machine.in_transit.size();
        EXPECT_LE(machine.fetched - ahead, before + (epoch == 0 ? 20 : 20 - cache));
        EXPECT_GE(machine.fetched - ahead + 4, before + (epoch == 0 ? 20 : 20 - cache));
        before = machine.fetched - ahead;
      }
      EXPECT_LE(machine.most_held, 4U);
    }
}

TEST(ShardSchedule, GoesOnIntoTheNextEpoch) {
  Machine machine(8, options(OrderMode::windowed), 0, 8);
  const std::uint64_t batches = machine.order.batches();
  for (std::uint64_t i = 0; i + 1 < batches; ++i) machine.batch(0, i);
  const std::vector<std::uint32_t> next = machine.order.shards_of(1);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(machine.in_transit.contains(next[i])) << "the first window";
  EXPECT_LE(machine.in_transit.size(), 4U) << "this window and the next one";
  machine.batch(0, batches - 1);
  EXPECT_EQ(machine.in_transit, std::set<std::uint32_t>(next.begin(), next.end()));
}

TEST(ShardSchedule, RequestsShardsInTheOrderOfNeed) {
  Machine machine(12, options(OrderMode::windowed, 3), 0, 12);
  machine.start(2, 0);
  std::vector<std::uint32_t> requested;
  while (const auto job = machine.schedule.next()) requested.push_back(job->shard);
  EXPECT_EQ(requested, machine.order.shards_of(2));
}

// A window of 8 shards of 10,000 bytes: batches of 4 of its 8,000 samples have 40 bytes.
TEST(ShardSchedule, DoesNotWaitForLargeShardsWhereAConsumerBegins) {
  const OrderOptions with = options(OrderMode::windowed, 8);
  const Order order(std::vector<std::uint64_t>(16, 1000), with);
  ShardSchedule schedule(order, std::vector<std::uint64_t>(16, 10'000), false, 320'000);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{3000}}) {
    std::uint64_t cold = 0;
    for (std::uint64_t i = first; i < first + 200; ++i) {
      schedule.start_batch(0, i, {});
      cold += schedule.readable(order.shards_of(0)[order.places(0, i).first]) ? 1 : 0;
      schedule.end_batch(0, i);
    }
    EXPECT_EQ(cold, 8 * 10'000 / 16 / 40);
  }
}

TEST(ShardSchedule, ReadsByRangeWhatHasNoRoom) {
  Machine none(6, options(OrderMode::windowed), 0, 0);
  EXPECT_GT(none.epoch(0), 0U);
  EXPECT_EQ(none.fetched, 0U);
  Machine one(6, options(OrderMode::windowed), 0, 1);
  EXPECT_GT(one.epoch(0), 0U);
  EXPECT_EQ(one.most_held, 1U);
  EXPECT_GE(one.fetched, 3U) << "one of each window";
}

TEST(ShardSchedule, ABatchOfTheNextWindowIsNotStartedWhileThisOneHoldsTheRoom) {
  Machine machine(6, options(OrderMode::windowed), 0, 2);
  const std::uint64_t last = 4;  // of the window's 20 samples
  for (std::uint64_t i = 0; i < last; ++i) machine.batch(0, i);
  machine.start(0, last);
  machine.work();
  EXPECT_FALSE(machine.schedule.ready(0, last + 1));
  machine.schedule.end_batch(0, last);
  EXPECT_TRUE(machine.schedule.ready(0, last + 1)) << "it waits for its shards only";
  machine.work();
  EXPECT_EQ(machine.batch(0, last + 1), 0U);
}

TEST(ShardSchedule, AnAbandonedBatchHoldsNothing) {
  Machine machine(6, options(OrderMode::windowed), 0, 2);
  machine.start(0, 0);
  machine.work();
  machine.schedule.abandon_batch(0, 0);
  machine.schedule.abandon_batch(0, 0);  // once is enough
  machine.schedule.abandon_batch(7, 7);  // was not started
  EXPECT_EQ(machine.epoch(1), 0U) << "all shards find room";
}

TEST(ShardSchedule, AShardStaysForABatchOfAnotherPlace) {
  OrderOptions with = options(OrderMode::sequential);
  with.batch_size = 8;
  with.tail = Tail::wrap;
  Machine machine(10, with, 0, 4);
  const std::uint64_t last = machine.order.batches() - 1;
  for (std::uint64_t i = 0; i < last; ++i) machine.batch(0, i);
  machine.start(0, last);  // and the first samples once more
  ASSERT_TRUE(machine.shards_of(0, last).contains(0));
  machine.work();
  EXPECT_TRUE(machine.in_transit.contains(0)) << "for the next epoch";
  machine.start(5, 3);  // the consumer goes elsewhere, while the device still makes that batch
  machine.work();
  EXPECT_TRUE(machine.in_transit.contains(0));
  machine.schedule.end_batch(0, last);
  machine.schedule.end_batch(5, 3);
  EXPECT_EQ(machine.epoch(6), 0U);
}

// Nothing waits for whole shards where a consumer begins, except for the eviction of one.
TEST(ShardSchedule, WaitsForAnEvictionAlsoWhereAConsumerBegins) {
  const Order order(std::vector<std::uint64_t>(16, 1000), options(OrderMode::windowed, 8));
  ShardSchedule schedule(order, std::vector<std::uint64_t>(16, 10'000), false, 320'000);
  const std::vector<std::uint32_t> shards = order.shards_of(0);
  schedule.start_batch(0, 0, {shards[0]});
  const std::optional<Job> fetch = schedule.next();
  ASSERT_TRUE(fetch && fetch->kind == Kind::fetch_to_transit && fetch->shard == shards[0]);
  schedule.done(*fetch, Result::done);
  schedule.end_batch(0, 0);
  schedule.start_batch(3, 0, {});  // the consumer goes elsewhere
  const std::optional<Job> evict = schedule.next();
  ASSERT_TRUE(evict && evict->kind == Kind::evict && evict->shard == shards[0]);
  schedule.end_batch(3, 0);
  schedule.start_batch(0, 0, {shards[0]});
  EXPECT_TRUE(schedule.readable(shards[1])) << "cold";
  EXPECT_TRUE(schedule.evicting(shards[0]));
  EXPECT_FALSE(schedule.readable(shards[0]));
  schedule.done(*evict, Result::done);
  EXPECT_TRUE(schedule.readable(shards[0]));
}

TEST(ShardSchedule, StartsOverWhereTheConsumerGoes) {
  Machine machine(12, options(OrderMode::windowed), 0, 4);
  std::mt19937 chance(3);
  for (int turn = 0; turn < 50; ++turn) {
    const std::uint64_t epoch = chance() % 4;
    const std::uint64_t begin = chance() % machine.order.batches();
    const std::uint64_t end = std::min<std::uint64_t>(begin + chance() % 8, machine.order.batches());
    for (std::uint64_t i = begin; i < end; ++i) EXPECT_EQ(machine.batch(epoch, i), 0U);
    EXPECT_LE(machine.most_held, 4U);
  }
}

// Jobs end in any order, some fail, and batches are started before others are over, as the feeder does.
TEST(ShardSchedule, NeverStopsForEver) {
  std::mt19937 chance(11);
  for (int round = 0; round < 5000; ++round) {
    OrderOptions with = options(chance() % 2 == 0 ? OrderMode::windowed : OrderMode::sequential,
                                1 + static_cast<std::uint32_t>(chance() % 4));
    // The last batch reads shards of the first window again.
    if (chance() % 2 == 0) with.tail = chance() % 2 == 0 ? Tail::pad : Tail::wrap;
    if (chance() % 3 == 0) {
      with.partition = Partition::by_shard;
      with.world_size = 1 + static_cast<std::uint32_t>(chance() % 3);
      with.tail = chance() % 2 == 0 ? Tail::pad : Tail::wrap;
      if (chance() % 2 == 0) with.order = OrderMode::shuffle;
    }
    with.batch_size = 1 + chance() % 16;
    std::vector<std::uint64_t> samples(4 + chance() % 16, kSamples);
    if (chance() % 2 == 0)  // of a selection
      for (std::uint64_t& count : samples) count = chance() % 4;
    for (std::size_t i = 0; i < 3; ++i) samples[i] = 4;  // one for each rank
    Machine machine(samples, with, chance() % 5, chance() % 6);
    std::vector<Job> running;
    std::uint64_t epoch = 0;
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    bool started = false;  // the batch `begun`
    // What batches read, which may be where it is mapped.
    const auto read_now = [&](std::uint32_t shard) {
      for (std::uint64_t i = ended; i < begun; ++i)
        if (machine.shards_of(epoch, i).contains(shard)) return true;
      return false;
    };
    for (int step = 0; epoch < 3; ++step) {
      ASSERT_LT(step, 20'000) << "round " << round;
      if (running.size() < 3)
        if (const auto job = machine.schedule.next()) running.push_back(*job);
      if (!running.empty() && chance() % 2 == 0) {
        std::swap(running[chance() % running.size()], running.back());
        const Job job = running.back();
        running.pop_back();
        machine.schedule.done(
            job, job.kind != Kind::evict && chance() % 10 == 0 ? Result::failed : machine.carry_out(job));
      }
      ASSERT_LE(machine.in_transit.size() * kBytes, machine.schedule.transit_bytes());
      for (const Job& job : running)
        ASSERT_FALSE(job.kind == Kind::evict && read_now(job.shard)) << "round " << round;
      const bool may = begun < machine.order.batches() && begun - ended < 3;
      if (may && !started && (begun == ended || machine.schedule.ready(epoch, begun))) {
        machine.start(epoch, begun);
        started = true;
      }
      if (started) {
        const auto shards = machine.shards_of(epoch, begun);
        if (std::all_of(shards.begin(), shards.end(),
                        [&](std::uint32_t shard) { return machine.schedule.readable(shard); })) {
          started = false;
          ++begun;
        } else if (begun == ended && chance() % 20 == 0) {  // the consumer goes on behind it
          machine.schedule.abandon_batch(epoch, begun);
          started = false;
          ended = ++begun;
        }
      } else if (ended < begun) {
        machine.schedule.end_batch(epoch, ended++);
      }
      if (begun == ended && !started && chance() % 50 == 0)
        ended = begun = chance() % machine.order.batches();
      if (ended == machine.order.batches()) {
        ++epoch;
        begun = ended = 0;
      }
    }
  }
}

}  // namespace
}  // namespace shard
