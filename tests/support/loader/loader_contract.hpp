// What every device must keep, written once: instantiated for the host, for CUDA (label gpu) and for the step
// device.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <thread>

#include "shard/loader/dlpack.hpp"
#include "shard/loader/memory.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {

using MakeDevice = std::shared_ptr<Device> (*)();

class LoaderContract : public ::testing::TestWithParam<MakeDevice> {
 protected:
  void SetUp() override {
    device_ = GetParam()();
    if (!device_) GTEST_SKIP() << "no such device on this machine";
  }
  Dataset dataset(const DatasetShape& shape = {}) {
    write_dataset(dir_.path(), shape);
    return Dataset::open(dir_.path());
  }
  static LoaderOptions options() {
    LoaderOptions options;
    options.batch_size = 8;
    options.threads = 2;
    return options;
  }

  TempDir dir_;
  std::shared_ptr<Device> device_;
};

TEST_P(LoaderContract, DeliversEachSampleOnceWithItsLabelAndBytes) {
  auto data = dataset();
  for (TransportKind kind : all_transports(dir_.path())) {
    LoaderOptions o = options();
    o.transport = kind;
    o.tail = Tail::pad;
    Loader loader(data, device_, o);
    std::vector<int> times(data.size(), 0);
    for (const Seen& seen : run_epoch(*device_, loader, 3)) {
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const std::uint64_t size = data.info().spec.size_bytes();
        const auto expected = sample_bytes(seen.ids[i], size);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                               seen.images.begin() + static_cast<std::ptrdiff_t>(i * size)))
            << "sample " << seen.ids[i] << " by " << to_string(kind);
        EXPECT_EQ(seen.labels[i], static_cast<std::int64_t>(1000 + seen.ids[i]));
        times[seen.ids[i]] += seen.mask[i];
      }
    }
    EXPECT_EQ(times, std::vector<int>(data.size(), 1)) << to_string(kind);
  }
}

// 101 samples on 3 ranks, batches of 8: the 5 of the last global batch are 1, 2 and 2 of the ranks. Batches
// of 11: 2 are left, so that one rank has an empty batch.
TEST_P(LoaderContract, DeliversEachSampleOnceOverAllRanksWithAShortTail) {
  auto data = dataset();
  const std::uint64_t size = data.info().spec.size_bytes();
  for (TransportKind kind : all_transports(dir_.path())) {
    for (std::uint64_t batch_size : {8U, 11U}) {
      for (Partition partition : {Partition::global, Partition::by_shard}) {
        std::vector<int> times(data.size(), 0);
        std::uint64_t fewest = batch_size;
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
          LoaderOptions o = options();
          o.transport = kind;
          o.tail = Tail::short_;
          o.partition = partition;
          o.batch_size = batch_size;
          o.world_size = 3;
          o.rank = rank;
          Loader loader(data, device_, o);
          std::uint64_t delivered = 0;
          for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
            const std::vector<Seen> batches = run_epoch(*device_, loader, epoch);
            ASSERT_EQ(batches.size(), batch_size == 8 ? 5U : 4U) << to_string(kind);
            for (std::size_t b = 0; b + 1 < batches.size(); ++b) ASSERT_EQ(batches[b].ids.size(), batch_size);
            if (epoch == 0) fewest = std::min<std::uint64_t>(fewest, batches.back().ids.size());
            for (const Seen& seen : batches) {
              delivered += seen.ids.size();
              for (std::size_t i = 0; i < seen.ids.size(); ++i) {
                if (epoch == 0) ++times[seen.ids[i]];
                EXPECT_EQ(seen.mask[i], 1);
                EXPECT_EQ(0, std::memcmp(sample_bytes(seen.ids[i], size).data(),
                                         seen.images.data() + i * size, size));
              }
            }
          }
          EXPECT_EQ(loader.stats().samples, delivered);
        }
        EXPECT_EQ(times, std::vector<int>(data.size(), 1)) << to_string(kind);
        if (partition == Partition::global) {
          EXPECT_EQ(fewest, batch_size == 8 ? 1U : 0U);
        }
      }
    }
  }
}

// Rank 0 of 3 gets nothing of the last two samples: in a slot that held 11 before, with a transform that
// reads samples wherever the transport has them.
TEST_P(LoaderContract, TransformsNothingOfABatchWithoutRows) {
  auto data = dataset();
  for (TransportKind kind : all_transports(dir_.path())) {
    LoaderOptions o = options();
    o.transport = kind;
    o.prefetch = 1;
    o.tail = Tail::short_;
    o.batch_size = 11;
    o.world_size = 3;
    o.transform.flip = 1;
    Loader loader(data, device_, o);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      const std::vector<Seen> batches = run_epoch(*device_, loader, epoch);
      ASSERT_EQ(batches.size(), 4U) << to_string(kind);
      EXPECT_EQ(batches[1].ids.size(), 11U);
      EXPECT_TRUE(batches[3].ids.empty()) << to_string(kind);
    }
  }
}

TEST_P(LoaderContract, GoesOnFromAShortTailAndResumesBeforeIt) {
  auto data = dataset();
  LoaderOptions o = options();
  o.tail = Tail::short_;
  Loader whole(data, device_, o);
  const std::vector<Seen> first = run_epoch(*device_, whole, 0);
  const std::vector<Seen> second = run_epoch(*device_, whole, 1);
  ASSERT_EQ(first.size(), 13U);
  EXPECT_EQ(first.back().ids.size(), 5U);
  EXPECT_EQ(second.front().ids.size(), 8U) << "the slot of a short batch holds whole ones again";
  Loader other(data, device_, o);
  other.start_epoch(0);
  for (std::size_t b = 0; b + 1 < first.size(); ++b) other.next();
  Loader resumed(data, device_, o);
  resumed.resume(LoaderState::parse(other.state().serialize()));
  EXPECT_EQ(run_epoch(*device_, resumed, 0), std::vector<Seen>{first.back()});
  const LoaderState end = resumed.state();
  EXPECT_EQ(run_epoch(*device_, resumed, 1), second);
  resumed.resume(end);
  EXPECT_TRUE(run_epoch(*device_, resumed, 0).empty());
  EXPECT_EQ(run_epoch(*device_, resumed, 1), second);
}

TEST_P(LoaderContract, TakesTheDeviceAndPinnedMemoryThatWasPlanned) {
  auto data = dataset();
  for (TransportKind kind : all_transports(dir_.path())) {
    LoaderOptions o = options();
    o.transport = kind;
    o.transform.dtype = DType::f16;
    o.memory.resident_bytes = 10'000;
    const LoaderMemory plan = plan_memory(data, *device_, o);
    Loader loader(data, device_, o);
    EXPECT_EQ(loader.stats().device_bytes, plan.device_bytes) << to_string(kind);
    EXPECT_GE(loader.stats().pinned_bytes, plan.pinned_bytes) << to_string(kind);
    if (kind == TransportKind::staged || kind == TransportKind::direct) {
      EXPECT_EQ(loader.stats().pinned_bytes, plan.pinned_bytes) << to_string(kind);
    }
  }
}

// Room for what the rank comes to, and no more than half of the free memory unless it is asked for.
TEST_P(LoaderContract, KeepsNoMoreResidentThanARankComesTo) {
  auto data = dataset();
  const std::uint64_t sample = data.info().spec.size_bytes();
  LoaderOptions o = options();
  o.transport = TransportKind::resident;
  const auto resident = [&](const LoaderOptions& asked) {
    LoaderOptions other = asked;
    other.memory.resident_bytes = sample;
    const std::uint64_t one = Loader(data, device_, other).stats().device_bytes - sample;
    Loader loader(data, device_, asked);
    run_epoch(*device_, loader, 0);
    const std::vector<Seen> again = run_epoch(*device_, loader, 1);
    EXPECT_FALSE(again.empty());
    return loader.stats().device_bytes - one;
  };
  EXPECT_EQ(resident(o), data.size() * sample);  // any of them, over the epochs
  o.order = OrderMode::sequential;
  EXPECT_EQ(resident(o), 96 * sample);  // 12 batches of 8
  o.world_size = 4;
  o.rank = 2;
  EXPECT_EQ(resident(o), 24 * sample);
  o.tail = Tail::short_;
  EXPECT_EQ(resident(o), 32 * sample);  // the last batch may be whole
}

TEST_P(LoaderContract, ExportsIdsAndMaskOfAShortBatchAsDlpack) {
  auto data = dataset();
  LoaderOptions o = options();
  o.tail = Tail::short_;
  o.batch_size = 200;
  Loader loader(data, device_, o);
  auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->size(), 101U);
  batch->wait();
  const auto expect_tensor = [](DLManagedTensorVersioned* tensor, DLDataTypeCode code, int bits,
                                const std::byte* data_pointer) {
    EXPECT_EQ(tensor->dl_tensor.ndim, 1);
    EXPECT_EQ(tensor->dl_tensor.shape[0], 101);
    EXPECT_EQ(tensor->dl_tensor.dtype.code, code);
    EXPECT_EQ(tensor->dl_tensor.dtype.bits, bits);
    EXPECT_EQ(tensor->dl_tensor.data, data_pointer);
    tensor->deleter(tensor);
  };
  expect_tensor(batch->to_dlpack(batch->device_ids()), kDLInt, 64, batch->device_ids().data);
  expect_tensor(batch->to_dlpack(batch->device_mask()), kDLBool, 8, batch->device_mask().data);
  expect_tensor(batch->to_dlpack(batch->column("labels")), kDLInt, 64, batch->column("labels").data);
}

TEST_P(LoaderContract, GivesTheSameBatchesForEveryTransportDepthAndThreadCount) {
  auto data = dataset();
  LoaderOptions o = options();
  o.transform.crop = CropKind::random_resized;
  o.transform.crop_height = 7;
  o.transform.crop_width = 9;
  o.transform.flip = 0.5;
  o.transform.dtype = DType::f16;
  o.transform.layout = Layout::nchw;
  o.transport = TransportKind::mapped;
  std::vector<Seen> reference;
  {
    Loader loader(data, device_, o);
    reference = run_epoch(*device_, loader, 5);
  }
  ASSERT_EQ(reference.size(), data.size() / 8);
  for (TransportKind kind : all_transports(dir_.path())) {
    for (std::uint32_t depth : {1U, 3U}) {
      LoaderOptions other = o;
      other.transport = kind;
      other.prefetch = depth;
      other.threads = depth;
      other.memory.resident_bytes = 360 * 50;  // half of the samples
      Loader loader(data, device_, other);
      if (kind == TransportKind::resident) {
        EXPECT_EQ(run_epoch(*device_, loader, 4).size(), reference.size());
      }
      EXPECT_EQ(run_epoch(*device_, loader, 5), reference) << to_string(kind) << ", depth " << depth;
    }
  }
}

TEST_P(LoaderContract, WaitsForBatchesAndTheirBytesInShortTurns) {
  auto data = dataset();
  const std::uint64_t size = data.info().spec.size_bytes();
  constexpr std::chrono::milliseconds kTurn(1);
  Loader loader(data, device_, options());
  constexpr std::uint64_t kEpochs = 10;
  std::uint64_t batches = 0;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++batches) {
    while (!loader.wait_ready(kTurn)) continue;
    auto batch = loader.next();
    if (!batch) {
      loader.start_epoch(++epoch);
      --batches;
      continue;
    }
    while (!batch->wait_ready(kTurn)) continue;
    if (device_->info().kind != DeviceKind::host) continue;
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const auto expected = sample_bytes(batch->ids()[i], size);
      ASSERT_EQ(0, std::memcmp(expected.data(), batch->images().data + i * size, size)) << batch->ids()[i];
    }
    batch->release();
    EXPECT_TRUE(batch->wait_ready(kTurn)) << "there is nothing to wait for";
  }
  EXPECT_EQ(batches, kEpochs * loader.batches_per_epoch());
}

TEST_P(LoaderContract, ResumesWhereItStoodAlsoInAnotherLoader) {
  auto data = dataset();
  Loader whole(data, device_, options());
  const std::vector<Seen> reference = run_epoch(*device_, whole, 2);
  Loader first(data, device_, options());
  first.start_epoch(2);
  for (int i = 0; i < 5; ++i) {
    auto batch = first.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(look(*device_, *batch), reference[static_cast<std::size_t>(i)]);
  }
  const LoaderState state = LoaderState::parse(first.state().serialize());
  Loader second(data, device_, options());
  second.resume(state);
  std::vector<Seen> rest = run_epoch(*device_, second, 2);
  EXPECT_EQ(rest, std::vector<Seen>(reference.begin() + 5, reference.end()));
}

TEST_P(LoaderContract, ResumedAtTheEndOfAnEpochHandsOutNothingMoreOfIt) {
  auto data = dataset();
  Loader first(data, device_, options());
  const std::vector<Seen> reference = run_epoch(*device_, first, 2);
  const std::vector<Seen> following = run_epoch(*device_, first, 3);
  LoaderState state = first.state();
  state.epoch = 2;
  EXPECT_EQ(state.position, reference.size() * options().batch_size);
  Loader second(data, device_, options());
  second.resume(state);
  EXPECT_TRUE(run_epoch(*device_, second, 2).empty());
  EXPECT_EQ(run_epoch(*device_, second, 3), following);
  second.resume(state);
  EXPECT_EQ(run_epoch(*device_, second, 3), following);
  second.resume(state);
  EXPECT_TRUE(run_epoch(*device_, second, 2).empty());
  EXPECT_EQ(run_epoch(*device_, second, 2), reference);  // asked for again: anew
}

TEST_P(LoaderContract, ReusesSlotsOverManyEpochsWithoutMixingBatches) {
  auto data = dataset();
  LoaderOptions o = options();
  o.prefetch = 1;
  Loader loader(data, device_, o);
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    const auto all = run_epoch(*device_, loader, epoch);
    ASSERT_EQ(all.size(), loader.batches_per_epoch());
    for (const Seen& seen : all)
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const auto expected = sample_bytes(seen.ids[i], 360);
        ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * 360, 360)) << "epoch " << epoch;
      }
  }
}

TEST_P(LoaderContract, GoesFromAnyEpochToAnyOther) {
  auto data = dataset();
  std::map<std::uint64_t, std::vector<Seen>> alone;
  for (std::uint64_t epoch : {0U, 1U, 2U, 7U}) {
    Loader loader(data, device_, options());
    alone[epoch] = run_epoch(*device_, loader, epoch);
  }
  Loader loader(data, device_, options());
  // The next one (which the loader has begun by then), the same, one back, one ahead; and the next one when
  // the last batch was taken without asking for the end.
  for (std::uint64_t epoch : {0U, 1U, 2U, 2U, 1U, 7U, 0U})
    EXPECT_EQ(run_epoch(*device_, loader, epoch), alone[epoch]) << epoch;
  for (std::size_t i = 0; i < alone[0].size(); ++i) {
    if (i == 0) loader.start_epoch(0);
    loader.next();
  }
  EXPECT_EQ(run_epoch(*device_, loader, 1), alone[1]);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next()) << "the end stays the end until an epoch is started";
  loader.start_epoch(2);
  loader.next();
  EXPECT_EQ(run_epoch(*device_, loader, 7), alone[7]) << "from the middle of an epoch";
}

TEST_P(LoaderContract, SaysWhenEveryBatchIsHeld) {
  auto data = dataset();
  LoaderOptions o = options();
  o.prefetch = 2;
  Loader loader(data, device_, o);
  std::vector<Batch> held;
  for (int i = 0; i < 3; ++i) held.push_back(std::move(*loader.next()));
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::resource, "all 3 batches of the ring are held");
  held.clear();
  EXPECT_TRUE(loader.next());
}

TEST_P(LoaderContract, LetsABatchOutliveItsLoaderAndDataSet) {
  std::optional<Batch> kept;
  Seen seen;
  {
    auto data = dataset();
    Loader loader(data, device_, options());
    kept = loader.next();
  }
  seen = look(*device_, *kept);
  const auto expected = sample_bytes(seen.ids[0], 360);
  EXPECT_EQ(0, std::memcmp(expected.data(), seen.images.data(), 360));
}

TEST_P(LoaderContract, LeavesAReleasedBatchItsNameAlone) {
  auto data = dataset();
  Loader loader(data, device_, options());
  loader.start_epoch(3);
  loader.next();
  auto batch = loader.next();
  batch->release();
  EXPECT_EQ(batch->size(), 8U);
  EXPECT_EQ(batch->epoch(), 3U);
  EXPECT_EQ(batch->index(), 1U);
  EXPECT_TRUE(batch->ids().empty());
  EXPECT_TRUE(batch->mask().empty());
  EXPECT_SHARD_ERROR(batch->labels(), ErrorCode::invalid_argument, "batch 1 of epoch 3 was released");
  EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::invalid_argument, "was released");
  EXPECT_SHARD_ERROR(batch->images(), ErrorCode::invalid_argument, "was released");
  batch->release();  // again: nothing
}

TEST_P(LoaderContract, StopsPromptlyWhenCancelledFromAnotherThread) {
  auto data = dataset();
  LoaderOptions o = options();
  o.prefetch = 1;
  Loader loader(data, device_, o);
  std::optional<Batch> first = loader.next();
  std::optional<Batch> second = loader.next();
  std::thread other([&] { loader.cancel(); });
  other.join();
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::cancelled, "cancelled");
}

TEST_P(LoaderContract, NamesTheShardThatWasCutWhileItRan) {
  auto data = dataset();
  for (TransportKind kind : link_transports(dir_.path())) {
    LoaderOptions o = options();
    o.transport = kind;
    o.prefetch = 1;
    Loader loader(data, device_, o);
    EXPECT_TRUE(loader.next());
    std::filesystem::resize_file(dir_.path() / "shard-0.safetensors", 4096);
    auto drain = [&] {
      for (int i = 0; i < 40; ++i)
        if (auto batch = loader.next()) look(*device_, *batch);
    };
    EXPECT_SHARD_ERROR(drain(), ErrorCode::corrupt, "shard-0.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
      std::filesystem::remove_all(entry.path());
    write_dataset(dir_.path(), {});
    data = Dataset::open(dir_.path());
  }
}

// A batch touches more shards than the feeder's thread looks at itself. Of a shard that was replaced, only
// this look tells: what is mapped is still the old one.
TEST_P(LoaderContract, NamesTheShardThatWasCutOrReplacedAmongMany) {
  const auto cut = [](const std::filesystem::path& shard) { std::filesystem::resize_file(shard, 4096); };
  const auto replace = [](const std::filesystem::path& shard) {
    std::filesystem::copy_file(shard, shard.string() + ".new");
    std::filesystem::rename(shard.string() + ".new", shard);
  };
  using Change = std::function<void(const std::filesystem::path&)>;
  for (const Change& change : {Change(cut), Change(replace)}) {
    for (TransportKind kind : link_transports(dir_.path())) {
      DatasetShape shape;
      shape.shards.assign(40, 5);
      auto data = dataset(shape);
      LoaderOptions o = options();
      o.transport = kind;
      o.batch_size = 100;
      o.prefetch = 1;
      Loader loader(data, device_, o);
      ASSERT_EQ(run_epoch(*device_, loader, 0).size(), 2U) << to_string(kind);
      change(dir_.path() / "shard-23.safetensors");
      // Not epoch 1, whose batches may have been made before the file was changed.
      EXPECT_SHARD_ERROR(run_epoch(*device_, loader, 5), ErrorCode::corrupt, "shard-23.safetensors");
      for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
        std::filesystem::remove_all(entry.path());
    }
  }
}

TEST_P(LoaderContract, FindsAFlippedByteWhenAskedTo) {
  auto data = dataset();
  const std::uint64_t at = data.shard(2).header().images_begin + 5 * 360 + 17;
  {
    std::FILE* file = std::fopen((dir_.path() / "shard-2.safetensors").c_str(), "r+b");
    std::fseek(file, static_cast<long>(at), SEEK_SET);
    std::fputc(std::fgetc(file) ^ 1, file);
    std::fclose(file);
  }
  for (TransportKind kind : link_transports(dir_.path())) {
    LoaderOptions o = options();
    o.transport = kind;
    o.verify = Verify::always;
    Loader loader(data, device_, o);
    EXPECT_SHARD_ERROR(run_epoch(*device_, loader, 0), ErrorCode::corrupt, "sample 5");
  }
}

TEST_P(LoaderContract, RefusesOptionsThatCannotBe) {
  auto data = dataset();
  auto make = [&](const std::function<void(LoaderOptions&)>& change) {
    LoaderOptions o = options();
    change(o);
    Loader loader(data, device_, o);
  };
  EXPECT_SHARD_ERROR(make([](auto& o) { o.batch_size = 0; }), ErrorCode::invalid_argument, "batch_size is 0");
  EXPECT_SHARD_ERROR(make([](auto& o) { o.rank = 4; }), ErrorCode::invalid_argument, "rank is 4");
  EXPECT_SHARD_ERROR(make([](auto& o) { o.prefetch = 65; }), ErrorCode::invalid_argument, "prefetch is 65");
  EXPECT_SHARD_ERROR(make([](auto& o) { o.batch_size = 200; }), ErrorCode::invalid_argument,
                     "leaves no batch");
  EXPECT_SHARD_ERROR(make([](auto& o) {
                       o.transform.crop = CropKind::center;
                       o.transform.crop_height = o.transform.crop_width = 13;
                     }),
                     ErrorCode::invalid_argument, "larger than the stored samples");
  EXPECT_SHARD_ERROR(make([](auto& o) {
                       o.transport = TransportKind::staged;
                       o.memory.pinned_bytes = 1000;
                     }),
                     ErrorCode::resource, "pinned_bytes is 1000");
}

TEST_P(LoaderContract, GivesItsMembersAsTensors) {
  auto data = dataset();
  Loader loader(data, device_, options());
  auto batch = loader.next();
  batch->wait();
  const DeviceInfo& device = device_->info();
  const TensorView images = batch->images();
  EXPECT_EQ(images.dtype, DType::u8);
  EXPECT_EQ(images.shape, (std::vector<std::uint64_t>{8, 12, 10, 3}));
  EXPECT_EQ(images.strides, (std::vector<std::int64_t>{360, 30, 3, 1}));
  EXPECT_EQ(images.size_bytes(), 8U * 360);
  EXPECT_EQ(images.device, device.kind);
  EXPECT_EQ(images.ordinal, device.ordinal);
  EXPECT_EQ(images.as<std::uint8_t>(), reinterpret_cast<const std::uint8_t*>(images.data));
  EXPECT_SHARD_ERROR(images.as<float>(), ErrorCode::invalid_argument, "u8 have 1 bytes, not 4");
  EXPECT_EQ(batch->device_ids().dtype, DType::i64);
  EXPECT_EQ(batch->device_mask().dtype, DType::boolean);
  const TensorView labels = batch->host_column("labels");
  EXPECT_EQ(labels.device, DeviceKind::host);
  EXPECT_EQ(labels.shape, std::vector<std::uint64_t>{8});
  EXPECT_TRUE(std::ranges::equal(std::span(labels.as<std::int64_t>(), 8), batch->labels()));
  EXPECT_SHARD_ERROR(batch->column("boxes"), ErrorCode::not_found, "boxes");
  EXPECT_SHARD_ERROR(batch->host_column("boxes"), ErrorCode::not_found, "boxes");
  // Host memory can be exported too; what is not of this batch cannot.
  DLManagedTensorVersioned* const tensor = batch->to_dlpack(labels);
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCPU);
  EXPECT_EQ(tensor->dl_tensor.data, labels.data);
  tensor->deleter(tensor);
  auto other = loader.next();
  EXPECT_SHARD_ERROR(other->to_dlpack(images), ErrorCode::invalid_argument, "not of batch 1");
  TensorView longer = images;
  longer.shape[0] = 1'000'000;
  EXPECT_SHARD_ERROR(batch->to_dlpack(longer), ErrorCode::invalid_argument, "not of batch 0");
}

TEST_P(LoaderContract, ExportsDlpackThatHoldsTheBatch) {
  auto data = dataset();
  LoaderOptions o = options();
  o.prefetch = 1;
  Loader loader(data, device_, o);
  auto batch = loader.next();
  batch->wait();
  DLManagedTensorVersioned* tensor = batch->to_dlpack(batch->images());
  const std::byte* images = batch->images().data;
  batch.reset();
  EXPECT_EQ(tensor->version.major, 1U);
  EXPECT_EQ(tensor->flags & 1U, 1U);
  EXPECT_EQ(tensor->dl_tensor.ndim, 4);
  EXPECT_EQ(tensor->dl_tensor.shape[0], 8);
  EXPECT_EQ(tensor->dl_tensor.shape[3], 3);
  EXPECT_EQ(tensor->dl_tensor.strides[0], 360);
  EXPECT_EQ(tensor->dl_tensor.data, images);
  auto second = loader.next();
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::resource, "are held");  // the tensor holds one of two slots
  tensor->deleter(tensor);
  second.reset();
  EXPECT_TRUE(loader.next());
}

}  // namespace shard::testing
