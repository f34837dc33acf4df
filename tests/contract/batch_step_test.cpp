// A batch may go at any time: its memory is used again after the work in the streams that it was handed to.
// On a device that carries work out when it is told to, so that each test is the worst case.
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "shard/loader/cuda_device.hpp"
#include "shard/loader/dlpack.hpp"
#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

static_assert(!std::is_constructible_v<StreamRef, std::nullptr_t>);
static_assert(!std::is_constructible_v<StreamRef, int>);
static_assert(!std::is_constructible_v<StreamRef, long>);
static_assert(!std::is_constructible_v<StreamRef, void*>);
static_assert(!std::is_constructible_v<StreamRef, CUstream_st*>,
              "0 would be a stream: cuda_stream() says which");
static_assert(!std::is_default_constructible_v<StreamRef>);

constexpr std::uint64_t kRows = 8;
constexpr std::uint64_t kRowBytes = 360;
constexpr std::chrono::milliseconds kMoment{100};
constexpr std::chrono::seconds kLong{20};

// What a consumer's kernels read of a batch: on the device, and from its host memory.
struct Reads {
  std::vector<std::uint64_t> ids;
  std::vector<std::byte> images = std::vector<std::byte>(kRows * kRowBytes);
  std::vector<std::byte> labels = std::vector<std::byte>(kRows * sizeof(std::int64_t));

  void queue(Stream& stream, const Batch& batch) {
    ids.assign(batch.ids().begin(), batch.ids().end());
    const CopyItem items[] = {{images.data(), batch.images().data, images.size()},
                              {labels.data(), batch.host_column("labels").data, labels.size()}};
    stream.copy_to_host(items);
  }
  void expect_the_batch() const {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::vector<std::byte> expected = sample_bytes(ids[i], kRowBytes);
      EXPECT_EQ(0, std::memcmp(expected.data(), images.data() + i * kRowBytes, kRowBytes))
          << "sample " << ids[i];
      std::uint64_t label = 0;
      std::memcpy(&label, labels.data() + i * sizeof(label), sizeof(label));
      EXPECT_EQ(label, 1000 + ids[i]);
    }
  }
};

class StepBatch : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override { write_dataset(dir_.path(), {}); }
  // Two slots. The consumer's streams are held: what is queued there has not been carried out.
  void start() {
    device_->run_freely(13);
    for (auto& stream : streams_) device_->hold(*stream);
    LoaderOptions options;
    options.batch_size = kRows;
    options.prefetch = 1;
    options.transport = GetParam();
    loader_.emplace(Dataset::open(dir_.path()), device_, options);
  }
  Stream& stream(std::size_t i = 0) { return *streams_[i]; }
  // The other slot goes round too, so that the loader comes to the one that is read.
  void drop_another() { static_cast<void>(loader_->next()); }
  // As long as `stream` is held no batch is made in the slot that it reads.
  void expect_waits_for(std::size_t i, const Reads& reads) {
    EXPECT_FALSE(loader_->wait_ready(kMoment)) << "the slot was used again while stream " << i << " reads it";
    device_->let_go(stream(i));
    stream(i).synchronize();
    reads.expect_the_batch();
  }
  void expect_goes_on() {
    EXPECT_TRUE(loader_->wait_ready(kLong));
    EXPECT_TRUE(loader_->next());
    EXPECT_EQ(device_->races(), std::vector<std::string>{});
  }

  TempDir dir_;
  std::shared_ptr<StepDevice> device_ = std::make_shared<StepDevice>();
  std::unique_ptr<Stream> streams_[3] = {device_->create_stream(), device_->create_stream(),
                                         device_->create_stream()};
  std::optional<Loader> loader_;
};
INSTANTIATE_TEST_SUITE_P(Transports, StepBatch,
                         ::testing::Values(TransportKind::mapped, TransportKind::staged,
                                           TransportKind::direct, TransportKind::resident));

TEST_P(StepBatch, ThatIsDestroyedIsNotRefilledUnderQueuedWork) {
  start();
  Reads reads;
  {
    auto batch = loader_->next();
    batch->wait_on(stream());
    reads.queue(stream(), *batch);
  }
  drop_another();
  expect_waits_for(0, reads);
  expect_goes_on();
}

TEST_P(StepBatch, ThatIsReleasedIsNotRefilledUnderQueuedWork) {
  start();
  Reads reads;
  auto batch = loader_->next();
  batch->wait_on(stream());
  reads.queue(stream(), *batch);
  batch->release();
  drop_another();
  expect_waits_for(0, reads);
  expect_goes_on();
}

TEST_P(StepBatch, IsReusedAfterEachStreamThatItWasHandedTo) {
  start();
  Reads reads[3];
  {
    auto batch = loader_->next();
    batch->wait_on(stream(0));
    batch->wait_on(stream(1));
    batch->wait_on(stream(0));  // again: remembered once
    stream(2).wait(stream(1).record());
    batch->remember(stream(2));  // ordered by the consumer's own event
    for (std::size_t i = 0; i < 3; ++i) reads[i].queue(stream(i), *batch);
  }
  drop_another();
  for (std::size_t i = 0; i < 3; ++i) expect_waits_for(i, reads[i]);
  expect_goes_on();
}

TEST_P(StepBatch, SurvivesAnExceptionBetweenWaitAndRelease) {
  start();
  Reads reads;
  const auto step = [&] {
    for (Batch& batch : loader_->epoch(0)) {
      batch.wait_on(stream());
      reads.queue(stream(), batch);
      throw std::runtime_error("the training failed");
      batch.release();
    }
  };
  EXPECT_THROW(step(), std::runtime_error);
  drop_another();
  expect_waits_for(0, reads);
  expect_goes_on();
}

TEST_P(StepBatch, SurvivesABreakAndTheNextEpoch) {
  start();
  Reads reads;
  for (Batch& batch : loader_->epoch(0)) {
    batch.wait_on(stream());
    reads.queue(stream(), batch);
    break;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the loader comes to the batch's slot again
  loader_->start_epoch(5);                                      // does not wait for the consumer
  device_->let_go(stream());
  stream().synchronize();
  reads.expect_the_batch();
  expect_goes_on();
}

TEST_P(StepBatch, ThatWasMovedIsOrderedOnceAndByItsNewOwner) {
  start();
  Reads reads;
  {
    auto batch = loader_->next();
    batch->wait_on(stream());
    reads.queue(stream(), *batch);
    Batch owner = std::move(*batch);
    EXPECT_EQ(batch->size(), 0U);
    EXPECT_TRUE(batch->ids().empty());
    EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::invalid_argument, "was moved from");
    EXPECT_SHARD_ERROR(batch->wait_on(stream()), ErrorCode::invalid_argument, "was moved from");
    EXPECT_SHARD_ERROR(batch->labels(), ErrorCode::invalid_argument, "was moved from");
    EXPECT_SHARD_ERROR(batch->images(), ErrorCode::invalid_argument, "was moved from");
    batch->release();  // nothing
    batch.reset();
    EXPECT_EQ(owner.size(), kRows);
    owner = std::move(*loader_->next());  // gives the first one back
  }
  expect_waits_for(0, reads);
  expect_goes_on();
}

TEST_P(StepBatch, IsOrderedByTheLastOfItsTensors) {
  start();
  Reads reads;
  auto batch = loader_->next();
  DLManagedTensorVersioned* const images = batch->to_dlpack(batch->images(), stream(0));
  DLManagedTensorVersioned* const labels = batch->to_dlpack(batch->column("labels"), stream(1));
  const std::byte* const at = batch->images().data;
  reads.queue(stream(0), *batch);
  stream(1).wait(stream(0).record());
  batch->release();  // the tensors hold it
  EXPECT_EQ(images->dl_tensor.data, at);
  labels->deleter(labels);
  {
    auto other = loader_->next();
    EXPECT_SHARD_ERROR(loader_->next(), ErrorCode::resource, "are held");
  }
  images->deleter(images);
  drop_another();
  device_->let_go(stream(1));
  expect_waits_for(0, reads);
  expect_goes_on();
}

TEST_P(StepBatch, MakesTheHostWaitForATensorThatNoStreamWasNamedFor) {
  start();
  auto batch = loader_->next();
  DLManagedTensorVersioned* const images = batch->to_dlpack(batch->images());
  const std::vector<std::byte> expected = sample_bytes(batch->ids()[0], kRowBytes);
  EXPECT_EQ(0, std::memcmp(expected.data(), images->dl_tensor.data, kRowBytes));
  images->deleter(images);
}

TEST_P(StepBatch, KeepsItsMemoryForQueuedWorkWhenTheLoaderIsGone) {
  start();
  Reads reads;
  auto batch = loader_->next();
  batch->wait_on(stream());
  reads.queue(stream(), *batch);
  loader_.reset();
  auto end = std::async(std::launch::async, [&] { batch.reset(); });
  EXPECT_EQ(end.wait_for(kMoment), std::future_status::timeout) << "the memory went under its reader";
  device_->let_go(stream());
  end.get();
  stream().synchronize();
  reads.expect_the_batch();
  EXPECT_EQ(device_->races(), std::vector<std::string>{});
}

TEST_P(StepBatch, ThatNobodyWaitedForIsReusedAfterItsOwnCopies) {
  start();
  for (int i = 0; i < 10; ++i) drop_another();
  EXPECT_EQ(device_->races(), std::vector<std::string>{});
}

TEST_P(StepBatch, OutlivesTheStreamThatItWasHandedTo) {
  start();
  Reads reads;
  {
    auto batch = loader_->next();
    auto brief = device_->create_stream();
    batch->wait_on(*brief);
    reads.queue(*brief, *batch);
    brief.reset();  // waits for the work in it
  }
  drop_another();
  reads.expect_the_batch();
  expect_goes_on();
}

TEST_P(StepBatch, WhoseStreamCannotBeAskedIsNeverRefilledAndFailsTheLoader) {
  start();
  auto batch = loader_->next();
  batch->wait_on(stream());
  device_->fail_records();
  EXPECT_SHARD_ERROR(batch->release(), ErrorCode::io,
                     "batch 0 of epoch 0 cannot be released, because its streams cannot tell");
  batch->release();  // again: nothing
  EXPECT_TRUE(loader_->wait_ready(kLong));
  EXPECT_SHARD_ERROR(loader_->next(), ErrorCode::io, "the test lets no event be recorded");
  EXPECT_SHARD_ERROR(loader_->next(), ErrorCode::io, "make a new loader");
  EXPECT_SHARD_ERROR(loader_->start_epoch(1), ErrorCode::io, "make a new loader");
}

TEST_P(StepBatch, WhoseStreamCannotBeAskedFailsTheLoaderAlsoFromItsDestructor) {
  start();
  std::vector<std::byte> before(kRows * kRowBytes);
  const std::byte* memory = nullptr;
  auto kept = loader_->next();
  {
    auto batch = loader_->next();
    batch->wait_on(stream());
    batch->wait();
    memory = batch->images().data;
    std::memcpy(before.data(), memory, before.size());
    device_->fail_records();
  }
  EXPECT_SHARD_ERROR(loader_->next(), ErrorCode::io, "batch 1 of epoch 0 cannot be released");
  kept.reset();
  EXPECT_SHARD_ERROR(loader_->next(), ErrorCode::io, "batch 1 of epoch 0 cannot be released");
  EXPECT_EQ(0, std::memcmp(before.data(), memory, before.size()));
}

TEST_P(StepBatch, RefusesAStreamOfAnotherKindOfDevice) {
  start();
  auto batch = loader_->next();
  EXPECT_SHARD_ERROR(batch->wait_on(cuda_stream(nullptr)), ErrorCode::invalid_argument, "device \"step\"");
  batch->release();  // that stream is not remembered
  EXPECT_TRUE(loader_->next());
}

TEST(CudaStream, OfNullIsTheLegacyDefaultStream) {
  const auto handle = [](std::uintptr_t number) {
    return reinterpret_cast<std::uintptr_t>(cuda_stream(reinterpret_cast<CUstream_st*>(number)).cuda());
  };
  EXPECT_EQ(handle(0), 1U);
  EXPECT_EQ(handle(1), 1U);
  EXPECT_EQ(handle(2), 1U) << "per thread: another stream in each";
  EXPECT_EQ(handle(0x7f00'1000), 0x7f00'1000U);
  EXPECT_TRUE(cuda_stream(nullptr) == cuda_stream(nullptr));
}

}  // namespace
}  // namespace shard::testing
