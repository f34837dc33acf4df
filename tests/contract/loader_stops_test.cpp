// Consumers that stop, throw, cancel, keep batches or ask from another thread: everything joins, nothing is
// mixed up.
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/process_use.hpp"
#include "support/rounds.hpp"
#include "support/transform/random_work.hpp"

namespace shard::testing {
namespace {

struct StopWay {
  const char* name;
  TransportKind transport;
  bool gpu_like;
};
void PrintTo(const StopWay& way, std::ostream* out) { *out << way.name; }

class LoaderStops : public ::testing::TestWithParam<StopWay> {
 protected:
  void SetUp() override {
    write_dataset(dir_.path(), {});
    data_ = Dataset::open(dir_.path());
    device_ = make_host_device(2);
    if (GetParam().gpu_like) device_ = std::make_shared<LimitedDevice>(device_, false);
    try {
      Loader(*data_, device_, options(1));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || GetParam().transport != TransportKind::direct) throw;
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override {
    if (longest_ > 0) std::cout << "longest stop: " << longest_ * 1e3 << " ms" << std::endl;
  }

  static LoaderOptions options(std::uint32_t prefetch) {
    LoaderOptions options;
    options.transport = GetParam().transport;
    options.batch_size = 4;
    options.threads = 2;
    options.prefetch = prefetch;
    return options;
  }
  // The promise is a second on an idle machine; tests run on busy ones, under sanitizers.
  void expect_prompt(const std::function<void()>& stop) {
    const auto begin = std::chrono::steady_clock::now();
    stop();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    longest_ = std::max(longest_, seconds);
    EXPECT_LT(seconds, 5.0);
  }
  static void expect_right(const Seen& seen) {
    for (std::size_t i = 0; i < seen.ids.size(); ++i) {
      const auto expected = sample_bytes(seen.ids[i], 360);
      ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * 360, 360))
          << "sample " << seen.ids[i];
    }
  }
  void expect_right(Batch& batch) { expect_right(look(*device_, batch)); }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<Device> device_;
  double longest_ = 0;
};
class StopsWhileRegistering : public LoaderStops {};  // on a device that registers shards
class StopsOfResident : public LoaderStops {};

TEST_P(LoaderStops, JoinsWhereverItsConsumerStops) {
  for (std::uint32_t prefetch : {1U, 4U, 64U})
    for (std::uint64_t taken : {0U, 1U, 5U, 24U, 25U}) {
      std::optional<Loader> loader(std::in_place, *data_, device_, options(prefetch));
      loader->start_epoch(1);
      for (std::uint64_t i = 0; i < taken; ++i) loader->next();
      expect_prompt([&] { loader.reset(); });
    }
}

TEST_P(LoaderStops, JoinsWhenItsConsumerThrows) {
  const auto train = [&] {
    Loader loader(*data_, device_, options(3));
    for (Batch& batch : loader.epoch(0)) {
      expect_right(batch);
      if (batch.index() == 7) throw std::runtime_error("the consumer gave up");
    }
  };
  expect_prompt([&] { EXPECT_THROW(train(), std::runtime_error); });
}

TEST_P(LoaderStops, GoesOnWhereABrokenLoopLeftOff) {
  Loader loader(*data_, device_, options(3));
  std::vector<std::uint64_t> indices;
  for (Batch& batch : loader.epoch(0)) {
    indices.push_back(batch.index());
    if (batch.index() == 7) break;
  }
  for (Batch& batch : loader.epoch(0)) indices.push_back(batch.index());
  ASSERT_EQ(indices.size(), 25U);
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(indices[i], i);
}

// A loader that was stopped often still comes to have each sample on the device: what a stopped batch was
// bringing is brought again, to the same place.
TEST_P(StopsOfResident, ComesToHaveAllSamplesOnTheDevice) {
  LoaderOptions asked = options(4);
  asked.tail = Tail::short_;
  asked.verify = Verify::never;
  Loader loader(*data_, device_, asked);
  std::uint64_t epoch = 0;
  for (; epoch < 200; ++epoch) {
    loader.start_epoch(2 * epoch);
    for (std::uint64_t i = 0; i < epoch % 5; ++i) {
      auto batch = loader.next();
      expect_right(batch.value());
    }
  }
  epoch *= 2;
  for (Batch& batch : loader.epoch(epoch)) expect_right(batch);
  for (const ShardSummary& shard : data_->info().shards) {
    const std::filesystem::path path = dir_.path() / shard.file;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    const std::uint64_t begin = sizeof header + header;
    file.seekp(static_cast<std::streamoff>(begin));
    file << std::string(std::filesystem::file_size(path) - begin, '\0');
    ASSERT_TRUE(file.flush());
  }
  for (Batch& batch : loader.epoch(epoch + 1)) expect_right(batch);
}

// Held batches keep their memory and their bytes, whoever gives them back and when.
TEST_P(LoaderStops, TakesBatchesBackLongAfterItIsGone) {
  std::vector<Batch> held;
  std::vector<Seen> seen;
  {
    Loader loader(*data_, device_, options(6));
    for (int i = 0; i < 6; ++i) {
      held.push_back(std::move(*loader.next()));
      held.back().wait();
    }
    expect_prompt([&] { Loader gone(std::move(loader)); });
  }
  data_.reset();
  std::thread([&] {
    for (Batch& batch : held) {
      const std::span<const std::byte> images(batch.images().data, 4 * 360);
      expect_right({0, 0, {batch.ids().begin(), batch.ids().end()}, {}, {}, {images.begin(), images.end()}});
    }
    held.clear();
  }).join();
}

// A batch that is kept for long holds its own memory only: not the threads of the loader it came from.
TEST_P(LoaderStops, LeavesNoThreadsBehindWithABatchThatIsKept) {
  device_.reset();
  const std::int64_t threads = process_use(dir_.path()).threads;
  std::optional<Batch> kept;
  {
    device_ = make_host_device(3);
    if (GetParam().gpu_like) device_ = std::make_shared<LimitedDevice>(device_, false);
    Loader loader(*data_, device_, options(2));
    kept = loader.next();
    kept->wait();
    EXPECT_GE(process_use(dir_.path()).threads, threads + 3);
  }
  EXPECT_EQ(process_use_at_rest(dir_.path(), threads).threads, threads);
  expect_right(*kept);
}

TEST_P(LoaderStops, LetsAnotherThreadGiveBatchesBack) {
  Loader loader(*data_, device_, options(4));
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> queue;  // at most 3 of the 5 batches: next() never finds all of them lent
  bool finished = false;
  std::thread worker([&] {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return finished || !queue.empty(); });
      if (queue.empty()) return;
      Batch batch = std::move(queue.front());
      lock.unlock();
      expect_right(batch);
      lock.lock();
      queue.pop_front();
      changed.notify_all();
    }
  });
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    loader.start_epoch(epoch);
    while (auto batch = loader.next()) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return queue.size() < 3; });
      queue.push_back(std::move(*batch));
      changed.notify_all();
    }
  }
  {
    std::lock_guard lock(mutex);
    finished = true;
  }
  changed.notify_all();
  worker.join();
}

// cancel() at any moment from another thread; afterwards the loader works again.
TEST_P(LoaderStops, StartsAgainAfterItWasCancelledAtAnyMoment) {
  Loader loader(*data_, device_, options(2));
  Random random(first_seed());
  const std::uint64_t count = rounds(150, 30);
  for (std::uint64_t round = 0; round < count; ++round) {
    loader.start_epoch(round);
    const std::uint32_t after = random.between(0, 30);
    std::atomic<std::uint32_t> taken{0};
    std::thread other([&] {
      while (taken < after) std::this_thread::yield();
      loader.cancel();
    });
    try {
      while (auto batch = loader.next()) {
        expect_right(*batch);
        ++taken;
      }
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::cancelled)) << error.what();
    }
    taken = 1000;
    expect_prompt([&] { other.join(); });
  }
  std::vector<Seen> all = run_epoch(*device_, loader, 7777);
  EXPECT_EQ(all.size(), 25U);
}

// Registering a shard of a gigabyte takes seconds where its pages have to be read first.
TEST_P(StopsWhileRegistering, JoinsWhileAShardIsBeingRegistered) {
  auto* const limited = dynamic_cast<LimitedDevice*>(device_.get());
  ASSERT_NE(limited, nullptr);
  const std::uint64_t tried = limited->calls(DeviceCall::registration) + 1;  // when the loader is made
  limited->hold_registrations_from(tried + 1);
  std::optional<Loader> loader(std::in_place, *data_, device_, options(2));
  for (int i = 0; i < 3; ++i) {
    std::optional<Batch> batch = loader->next();
    expect_right(*batch);
  }
  ASSERT_TRUE(comes_true([&] { return limited->calls(DeviceCall::registration) > tried; }));
  expect_prompt([&] { loader.reset(); });
  for (DeviceCall call : kDeviceCalls) EXPECT_EQ(limited->alive(call), 0) << to_string(call);
}

// Without staging memory the loader's thread waits for the shard.
TEST_P(StopsWhileRegistering, EndsAWaitForTheRegistrationOfAShard) {
  auto* const limited = dynamic_cast<LimitedDevice*>(device_.get());
  ASSERT_NE(limited, nullptr);
  LoaderOptions o = options(2);
  o.memory.pinned_bytes = 1;
  const std::uint64_t tried = limited->calls(DeviceCall::registration) + 1;  // when the loader is made
  limited->hold_registrations_from(tried + 1);
  std::optional<Loader> loader(std::in_place, *data_, device_, o);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) expect_prompt([&] { loader->start_epoch(epoch); });
  ASSERT_TRUE(comes_true([&] { return limited->calls(DeviceCall::registration) > tried; }));
  expect_prompt([&] { loader->cancel(); });
  EXPECT_SHARD_ERROR(loader->next(), ErrorCode::cancelled, "cancelled");
  expect_prompt([&] { loader->start_epoch(3); });
  expect_prompt([&] { loader.reset(); });
  limited->hold_registrations_from(std::numeric_limits<std::uint64_t>::max());
  loader.emplace(*data_, device_, o);
  EXPECT_EQ(run_epoch(*device_, *loader, 4).size(), 25U);
}

TEST_P(LoaderStops, StaysCancelledUntilAnEpochIsStarted) {
  Loader loader(*data_, device_, options(2));
  loader.cancel();  // before its first epoch
  for (int i = 0; i < 2; ++i) EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
  EXPECT_TRUE(loader.wait_ready(std::chrono::milliseconds(0)));
  loader.start_epoch(0);
  EXPECT_EQ(run_epoch(*device_, loader, 0).size(), 25U);
  loader.cancel();  // at its end, where the next epoch is begun already
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
  loader.start_epoch(1);
  EXPECT_EQ(run_epoch(*device_, loader, 1).size(), 25U);
}

// Two threads, nothing between them: what is delivered is right, and each epoch runs to its end or is
// cancelled. A cancel() after the last start_epoch() is never lost.
TEST_P(LoaderStops, MayBeCancelledAndStartedAtTheSameTime) {
  Loader loader(*data_, device_, options(2));
  const std::uint64_t count = rounds(300, 40);
  for (std::uint64_t round = 0; round < count && !HasFailure(); ++round) {
    std::atomic<int> at{0};
    bool cancelled_later = false;  // cancel() was called when start_epoch() had returned
    std::thread other([&] {
      at = 1;
      while (at == 1) std::this_thread::yield();
      for (std::uint64_t i = 0; i < round % 4; ++i) std::this_thread::yield();
      cancelled_later = at == 3;
      loader.cancel();
    });
    while (at != 1) std::this_thread::yield();
    at = 2;
    loader.start_epoch(round);
    at = 3;
    std::uint64_t batches = 0;
    try {
      while (auto batch = loader.next()) {
        EXPECT_EQ(batch->epoch(), round);
        EXPECT_EQ(batch->index(), batches++);
        expect_right(*batch);
      }
      EXPECT_EQ(batches, 25U);
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::cancelled)) << error.what();
    }
    other.join();
    if (cancelled_later) EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
  }
}

TEST_P(LoaderStops, TellsItsStatisticsAndStateToOtherThreadsWhileAnEpochRuns) {
  Loader loader(*data_, device_, options(2));
  std::atomic<bool> finished{false};
  std::thread other([&] {
    LoaderStats last;
    while (!finished) {
      const LoaderStats stats = loader.stats();
      EXPECT_GE(stats.batches, last.batches);
      EXPECT_GE(stats.bytes, last.bytes);
      EXPECT_LE(loader.state().position, 100U);
      last = stats;
    }
  });
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) run_epoch(*device_, loader, epoch);
  finished = true;
  other.join();
  EXPECT_EQ(loader.stats().batches, 250U);
  EXPECT_EQ(loader.stats().samples, 1000U);
}

// A batch of many views takes the host seconds. What is begun and will not be read is left out;
// a batch that is lent is made.
TEST(LoaderStopsOnTheHost, DoesNotMakeTheBatchesThatNobodyWillRead) {
  const TempDir dir;
  write_dataset(dir.path(), {{64}, {DType::u8, Layout::nhwc, 3, 128, 128}, {}});
  const Dataset data = Dataset::open(dir.path());
  const auto device = make_host_device(2);
  LoaderOptions options;
  options.batch_size = 16;
  options.threads = 2;
  options.prefetch = 8;
  options.transform.operations = {ops::GaussianBlur{}, ops::RandAugment{}};
  options.further_views.assign(5, options.transform);
  const auto seconds_of = [](const std::function<void()>& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::optional<Loader> loader(std::in_place, data, device, options);
  std::optional<Batch> kept;
  const double batch = seconds_of([&] {
    kept = loader->next();
    kept->wait();
  });
  const Seen expected = look(*device, *kept);
  EXPECT_LT(seconds_of([&] { loader->start_epoch(7); }), batch) << "start_epoch()";
  kept = loader->next();
  kept->wait();
  EXPECT_LT(seconds_of([&] { loader.reset(); }), batch) << "the end of the loader";
  kept.reset();
  // A batch that is lent before it is made is whole, whenever the loader ends.
  loader.emplace(data, device, options);
  kept = loader->next();
  loader.reset();
  EXPECT_EQ(look(*device, *kept), expected);
}

INSTANTIATE_TEST_SUITE_P(Ways, LoaderStops,
                         ::testing::Values(StopWay{"mapped", TransportKind::mapped, false},
                                           StopWay{"mapped_gpu_like", TransportKind::mapped, true},
                                           StopWay{"staged", TransportKind::staged, false},
                                           StopWay{"resident", TransportKind::resident, false},
                                           StopWay{"resident_gpu_like", TransportKind::resident, true},
                                           StopWay{"direct", TransportKind::direct, false}),
                         [](const auto& way) { return std::string(way.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, StopsOfResident,
                         ::testing::Values(StopWay{"resident", TransportKind::resident, false},
                                           StopWay{"resident_gpu_like", TransportKind::resident, true}),
                         [](const auto& way) { return std::string(way.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, StopsWhileRegistering,
                         ::testing::Values(StopWay{"mapped_gpu_like", TransportKind::mapped, true},
                                           StopWay{"resident_gpu_like", TransportKind::resident, true}),
                         [](const auto& way) { return std::string(way.param.name); });

// A device that does nothing until it is told to: next() waits, and would for ever.
TEST(LoaderOnAStalledDevice, WakesFromNextWhenCancelled) {
  TempDir dir;
  write_dataset(dir.path(), {});
  auto device = std::make_shared<StepDevice>();
  LoaderOptions options;
  options.batch_size = 8;
  options.prefetch = 1;
  options.transport = TransportKind::staged;
  Loader loader(Dataset::open(dir.path()), device, options);
  {
    auto first = loader.next();
    auto second = loader.next();
  }  // both slots are given back; their copies are not done
  std::atomic<bool> asks{false};
  std::atomic<bool> woke{false};
  std::thread consumer([&] {
    asks = true;
    EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
    woke = true;
  });
  while (!asks) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  loader.cancel();
  consumer.join();
  EXPECT_TRUE(woke);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  device->run_freely(3);  // so that the loader's streams end
  loader.start_epoch(1);
  EXPECT_EQ(run_epoch(*device, loader, 1).size(), loader.batches_per_epoch());
}

// start_epoch() waits for the loader's thread, which waits for the device: a cancel() meanwhile is of the new
// epoch.
TEST(LoaderOnAStalledDevice, KeepsACancelThatComesWhileAnEpochIsStarted) {
  TempDir dir;
  write_dataset(dir.path(), {});
  auto device = std::make_shared<StepDevice>();
  LoaderOptions options;
  options.batch_size = 8;
  options.prefetch = 1;
  options.transport = TransportKind::staged;
  Loader loader(Dataset::open(dir.path()), device, options);
  double waited = 0;
  {
    auto first = loader.next();
    auto second = loader.next();
    waited = loader.stats().consumer_seconds;
  }
  // The loader's thread has a slot again, and waits for the copies of its last batch.
  ASSERT_TRUE(comes_true([&] { return loader.stats().consumer_seconds > waited; }));
  std::atomic<bool> returned{false};
  std::thread starting([&] {
    loader.start_epoch(5);
    returned = true;
  });
  ASSERT_TRUE(comes_true([&] { return loader.state().epoch == 5; }));
  const bool before = !returned;
  loader.cancel();
  device->run_freely(3);
  starting.join();
  EXPECT_TRUE(before);
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
  loader.start_epoch(6);
  EXPECT_EQ(run_epoch(*device, loader, 6).size(), loader.batches_per_epoch());
}

}  // namespace
}  // namespace shard::testing
