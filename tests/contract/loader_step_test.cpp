// The loader on a device that carries work out as late and in as odd an order as it may, and that knows what
// was not ordered.
#include <chrono>
#include <thread>

#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_contract.hpp"
#include "support/loader/loader_free_contract.hpp"
#include "support/loader/loader_free_fields_contract.hpp"
#include "support/loader/loader_jpeg_contract.hpp"
#include "support/loader/loader_views_contract.hpp"

namespace shard::testing {
namespace {

std::shared_ptr<Device> step_free() {
  auto device = std::make_shared<StepDevice>();
  device->run_freely(7);
  return device;
}
INSTANTIATE_TEST_SUITE_P(Step, LoaderContract, ::testing::Values(&step_free));

class StepLoader : public ::testing::TestWithParam<TransportKind> {
 protected:
  // Runs epochs whose consumer reads each batch on a stream of its own; `waits`: ordered after the batch.
  std::vector<std::string> races(bool waits) {
    TempDir dir;
    write_dataset(dir.path(), {});
    auto device = std::make_shared<StepDevice>();
    device->run_freely(11);
    LoaderOptions options;
    options.batch_size = 8;
    options.prefetch = 2;
    options.transport = GetParam();
    options.transform.flip = 0.5;
    Loader loader(Dataset::open(dir.path()), device, options);
    auto stream = device->create_stream();
    std::vector<std::byte> sink(8 * 360);
    for (int epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(static_cast<std::uint64_t>(epoch));
      while (auto batch = loader.next()) {
        if (waits) batch->wait_on(*stream);
        const CopyItem item{sink.data(), batch->images().data, sink.size()};
        stream->copy_to_host({&item, 1});
        if (epoch == 0) batch->release();  // else at the end of its life
      }
    }
    stream->synchronize();
    return device->races();
  }
};

TEST_P(StepLoader, OrdersEveryReuseOfASlotAfterTheConsumersWork) {
  EXPECT_EQ(races(true), std::vector<std::string>{});
}

TEST_P(StepLoader, SeesAConsumerThatReadsBeforeTheBatchIsThere) { EXPECT_NE(races(false).size(), 0U); }

INSTANTIATE_TEST_SUITE_P(Transports, StepLoader,
                         ::testing::Values(TransportKind::mapped, TransportKind::staged,
                                           TransportKind::direct, TransportKind::resident));

// Frames are decoded by streams of their own, several batches at a time.
TEST_P(StepLoader, OrdersTheDecodingOfJpegsAfterTheirCopiesAndBeforeTheirTransforms) {
  for (const bool late : {false, true}) {
    TempDir dir;
    write_jpeg_dataset(dir.path(), {});
    const Dataset data = Dataset::open(dir.path());
    auto device = std::make_shared<StepDevice>();
    device->run_freely(11);
    LoaderOptions options = free_options(views_of_any_size()[0].second);
    options.transport = GetParam();
    options.further_views = {views_of_any_size()[3].second};
    if (late) options.memory.batch_bytes = data.info().largest().sample_bytes;
    Loader loader(data, device, options);
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      loader.start_epoch(epoch);
      while (std::optional<Batch> batch = loader.next()) batch->release();
    }
    EXPECT_EQ(device->races(), std::vector<std::string>{});
  }
}

LoaderOptions two_slots() {
  LoaderOptions options;
  options.batch_size = 8;
  options.prefetch = 1;
  return options;
}

// Nothing is carried out on the device: after two batches of two slots there is no third one.
TEST(StepLoaderFeeder, SaysWhetherTheNextBatchIsThere) {
  TempDir dir;
  write_dataset(dir.path(), {});
  auto device = std::make_shared<StepDevice>();
  LoaderOptions options = two_slots();
  options.transport = TransportKind::staged;
  Loader loader(Dataset::open(dir.path()), device, options);
  EXPECT_TRUE(loader.wait_ready(std::chrono::seconds(20)));
  {
    auto first = loader.next();
    EXPECT_TRUE(loader.wait_ready(std::chrono::seconds(20)));
    auto second = loader.next();
    EXPECT_TRUE(loader.wait_ready(std::chrono::seconds(20))) << "next() would say that all are held";
    EXPECT_SHARD_ERROR(loader.next(), ErrorCode::resource, "are held");
  }
  const double starved = loader.stats().starved_seconds;
  EXPECT_FALSE(loader.wait_ready(std::chrono::milliseconds(50)));
  EXPECT_GE(loader.stats().starved_seconds - starved, 0.049);
  device->run_freely(5);
  EXPECT_TRUE(loader.wait_ready(std::chrono::seconds(20)));
  EXPECT_TRUE(loader.next());
  loader.cancel();
  EXPECT_TRUE(loader.wait_ready(std::chrono::seconds(20)));
}

// A batch that is begun is handed out, also when the slot of the one behind it is still in flight.
TEST(StepLoaderFeeder, DoesNotHoldABatchUpForASlotThatIsInFlight) {
  TempDir dir;
  write_dataset(dir.path(), {});
  auto device = std::make_shared<StepDevice>();  // nothing is carried out yet
  LoaderOptions options = two_slots();
  options.transport = TransportKind::staged;
  Loader loader(Dataset::open(dir.path()), device, options);
  const auto stream = device->create_stream();
  {
    auto first = loader.next();
    auto second = loader.next();
    first->wait_on(*stream);
    first->release();
    second->release();
    const Event first_is_there = stream->record();
    device->step_to(first_is_there);  // and no more
  }
  std::thread watch([device, &loader] {  // so that a failure is not a hang
    const auto begin = std::chrono::steady_clock::now();
    while (loader.stats().batches < 3 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
      std::this_thread::yield();
    EXPECT_EQ(loader.stats().batches, 3U) << "the third batch waited for the second one's copies";
    device->run_freely(5);
  });
  EXPECT_TRUE(loader.next());
  watch.join();
}

TEST(LoaderStats, SayWhoWaitedForWhom) {
  TempDir dir;
  write_dataset(dir.path(), {});
  auto device = std::make_shared<StepDevice>();  // nothing is carried out yet
  Loader loader(Dataset::open(dir.path()), device, two_slots());
  constexpr std::chrono::milliseconds kPause{200};  // threads may be late by half of it
  const double pause = std::chrono::duration<double>(kPause).count();
  for (int i = 0; i < 2; ++i) loader.next();
  std::thread later([&] {
    std::this_thread::sleep_for(kPause);
    device->run_freely(3);
  });
  for (int i = 0; i < 2; ++i) loader.next();  // two slots: the third batch needs the first one's copies done
  later.join();
  EXPECT_GE(loader.stats().link_seconds, pause / 2);
  const double before = loader.stats().consumer_seconds;
  std::this_thread::sleep_for(2 * kPause);  // the ring is full: the loader waits for the consumer
  for (int i = 0; i < 3; ++i) loader.next();
  EXPECT_GE(loader.stats().consumer_seconds - before, pause / 2);
}

TEST(StepDevice, CarriesWorkOutOnlyWhenToldTo) {
  StepDevice device;
  auto block = device.allocate_device(4);
  auto stream = device.create_stream();
  const std::byte source[4] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const CopyItem item{block->data(), source, 4};
  stream->copy({&item, 1});
  const Event event = stream->record();
  EXPECT_EQ(block->data()[0], std::byte{0xEE});
  EXPECT_TRUE(device.step(*stream));
  EXPECT_EQ(block->data()[0], std::byte{1});
  EXPECT_FALSE(event.done());
  EXPECT_TRUE(device.step(*stream));
  EXPECT_TRUE(event.done());
  EXPECT_FALSE(device.step(*stream));
}

TEST(StepDevice, KnowsTwoStreamsThatWriteOneBlockWithoutAnEvent) {
  StepDevice device;
  auto block = device.allocate_device(4);
  auto a = device.create_stream();
  auto b = device.create_stream();
  const std::byte source[4] = {};
  const CopyItem item{block->data(), source, 4};
  a->copy({&item, 1});
  const Event event = a->record();
  b->wait(event);
  b->copy({&item, 1});
  EXPECT_TRUE(device.races().empty());
  a->copy({&item, 1});
  EXPECT_EQ(device.races().size(), 1U);
}

}  // namespace
}  // namespace shard::testing
