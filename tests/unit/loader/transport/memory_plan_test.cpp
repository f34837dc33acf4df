// plan_memory(): figures stated by hand, and what a loader then counts.
#include "transport/memory_plan.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>

#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "transport/choose.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kSample = 3 * 12 * 10;
constexpr std::uint64_t kSamples = 101;
// Batches of 10: labels and ids are 80 bytes each, the mask 10; each takes 256.
constexpr std::uint64_t kColumns = 3 * 256;

class MemoryPlan : public ::testing::Test {
 protected:
  const Dataset& dataset(const DatasetShape& shape = {}) {
    write_dataset(dir_.path(), shape);
    data_ = Dataset::open(dir_.path());
    return *data_;
  }
  static LoaderOptions options(TransportKind transport) {
    LoaderOptions options;
    options.batch_size = 10;
    options.prefetch = 3;
    options.threads = 1;
    options.transport = transport;
    return options;
  }
  static DeviceInfo host() { return make_host_device(1)->info(); }
  static DeviceInfo gpu() { return make_gpu_like_device(1)->info(); }

  TempDir dir_;
  std::optional<Dataset> data_;
};

TEST_F(MemoryPlan, GivesStatedFiguresForEachTransport) {
  const Dataset& data = dataset();
  constexpr std::uint64_t kDevice = 4 * (10 * kSample + kColumns);
  EXPECT_EQ(plan_memory(data, host(), options(TransportKind::mapped), 0),
            (LoaderMemory{kDevice, 4 * kColumns, 0, TransportKind::mapped}));
  EXPECT_EQ(plan_memory(data, gpu(), options(TransportKind::mapped), 0),
            (LoaderMemory{kDevice, 4 * kColumns, kSamples * kSample, TransportKind::mapped}));

  // u8 to f32: the stored batch is on the device too.
  LoaderOptions staged = options(TransportKind::staged);
  staged.transform.dtype = DType::f32;
  const std::uint64_t buffers = staging_memory(data.info(), staged, last_cache_bytes()).plan.buffers;
  EXPECT_EQ(plan_memory(data, gpu(), staged, 0),
            (LoaderMemory{4 * (10 * kSample * 5 + kColumns), 4 * kColumns + buffers * 10 * kSample, 0,
                          TransportKind::staged}));
  // The host device reads samples where they are mapped.
  staged.transport = TransportKind::mapped;
  EXPECT_EQ(plan_memory(data, host(), staged, 0).device_bytes, 4 * (10 * kSample * 4 + kColumns));
}

// 10 samples in two buffers of 8x8x3, each for two batches at once.
TEST_F(MemoryPlan, CountsWhereOperationsAreExecutedOnAGpu) {
  const DatasetInfo& info = dataset().info();
  DeviceInfo cuda = gpu();
  cuda.kind = DeviceKind::cuda;
  LoaderOptions augmented = options(TransportKind::mapped);
  augmented.transform.crop = CropKind::random_resized;
  augmented.transform.crop_height = augmented.transform.crop_width = 8;
  EXPECT_EQ(compute_memory(info, cuda, augmented).size_bytes(), 0U);
  augmented.transform.operations = {ops::Invert{}};
  EXPECT_EQ(compute_memory(info, cuda, augmented).lanes, 2U);
  EXPECT_EQ(compute_memory(info, cuda, augmented).size_bytes(), 2 * 2 * (10 * 192 + 128));
  EXPECT_EQ(compute_memory(info, host(), augmented).size_bytes(), 0U);
  augmented.transport = TransportKind::resident;
  EXPECT_EQ(compute_memory(info, cuda, augmented).lanes, 1U) << "its batches read what others copied";
}

DatasetInfo jpegs() {
  DatasetInfo info;
  info.spec = {DType::u8, Layout::nhwc, 3, 375, 500};
  info.normalization = kNormalization;
  info.codec = CodecSpec(CodecSpec::Kind::jpeg);
  info.shards.push_back({"a", 1000, 100'000'000, 0});
  return info;
}

// What decodes JPEGs on a GPU grows with the batches that run ahead, to a bound.
TEST_F(MemoryPlan, CountsWhatDecodesJpegs) {
  const DatasetInfo info = jpegs();
  LoaderOptions o = options(TransportKind::staged);
  struct Row {
    std::uint64_t batch;
    std::uint32_t prefetch;
    std::uint64_t rooms;
    std::uint64_t decoders;
    std::uint64_t group;
  };
  for (const Row& row :
       {Row{256, 1, 1, 2, 128}, Row{256, 2, 2, 4, 128}, Row{256, 4, 4, 6, 128}, Row{256, 64, 4, 6, 128},
        Row{64, 1, 1, 1, 64}, Row{64, 64, 7, 6, 64}, Row{1024, 4, 2, 4, 128}, Row{1, 4, 4, 4, 1}}) {
    o.batch_size = row.batch;
    o.prefetch = row.prefetch;
    const ComputeMemory memory = compute_memory(info, gpu(), o);
    EXPECT_EQ(memory.rooms, row.rooms) << row.batch << ", " << row.prefetch;
    EXPECT_EQ(memory.lanes, 1U);
    EXPECT_EQ(memory.decoder.decoders, row.decoders) << row.batch << ", " << row.prefetch;
    EXPECT_EQ(memory.decoder.group_rows, row.group);
    EXPECT_EQ(memory.decoded_bytes, row.batch * 562'512);  // 375 x 500 x 3, rounded up to 16
    EXPECT_EQ(memory.size_bytes(),
              row.rooms * memory.decoded_bytes + row.decoders * memory.decoder.workspace_bytes);
  }
  o.batch_size = 256;
  o.prefetch = 1;
  EXPECT_LE(compute_memory(info, gpu(), o).size_bytes(), 400'000'000U);
  o.prefetch = 64;
  EXPECT_LE(compute_memory(info, gpu(), o).size_bytes(), 1'500'000'000U);
  EXPECT_EQ(compute_memory(info, host(), o).size_bytes(), 0U) << "it decodes in the transform";
  o.further_views = {o.transform};
  EXPECT_EQ(compute_memory(info, host(), o).size_bytes(), 256U * 562'512) << "once for both views";
}

// Of random-resized crops only the boxes are decoded, unless several views are made from one decoding.
TEST_F(MemoryPlan, CountsOnlyWhatRandomResizedCropsOfJpegsNeed) {
  const DatasetInfo info = jpegs();
  LoaderOptions o = options(TransportKind::staged);
  const auto workspace = [&] {
    return static_cast<double>(compute_memory(info, gpu(), o).decoder.workspace_bytes);
  };
  const double whole = workspace();
  o.transform.crop = CropKind::random_resized;
  o.transform.crop_height = o.transform.crop_width = 224;
  EXPECT_NEAR(workspace() / whole, 0.64, 0.01);
  o.transform.scale = {0.01, 0.03};
  EXPECT_NEAR(workspace() / whole, 0.12, 0.01);
  o.transform.scale = {1, 1};
  EXPECT_EQ(workspace(), whole);
  o.transform.scale = {0.01, 0.03};
  o.further_views = {o.transform};
  EXPECT_EQ(workspace(), whole);
}

TEST_F(MemoryPlan, CountsEachColumnRoundedUp) {
  DatasetInfo info = dataset().info();
  info.columns = {{"labels", DType::i64, {}}, {"boxes", DType::f32, {7, 4}}};
  const SlotMemory slot = slot_memory(info, gpu(), options(TransportKind::staged), TransportKind::staged);
  EXPECT_EQ(slot.columns_offsets, (std::vector<std::uint64_t>{0, 256, 256 + 1280, 512 + 1280}));
  EXPECT_EQ(slot.columns_bytes, 3 * 256 + 1280);  // 10 boxes of 112 bytes are 1120
}

TEST_F(MemoryPlan, AddsARangeAroundEachSampleWhereDirectReadsAreNotAligned) {
  DatasetInfo info = dataset().info();
  const LoaderOptions direct = options(TransportKind::direct);
  EXPECT_EQ(direct_memory(info, direct, 512).pitch_bytes.at(0), 8192);  // 360 bytes: two pages at most
  EXPECT_EQ(direct_memory(info, direct, 512).slot_bytes, 10 * 8192 + 4096);
  info.spec.height = info.spec.width = 64;  // 3 pages
  EXPECT_EQ(direct_memory(info, direct, 4096).slot_bytes, 10 * 3 * 4096 + 4096);
  EXPECT_EQ(direct_memory(info, direct, 8192).pitch_bytes.at(0),
            3 * 8192);  // more than the images are aligned to
  info.codec = {CodecSpec::Kind::zstd};
  EXPECT_EQ(direct_memory(info, direct, 8192).pitch_bytes.at(0), 3 * 4096)
      << "samples are decompressed to it";
  info.spec.width = info.spec.height = 32'768;
  EXPECT_SHARD_ERROR(direct_memory(info, direct, 4096), ErrorCode::unsupported, "a direct read takes");
}

TEST_F(MemoryPlan, KeepsNoMoreResidentThanThereIsAndIsAskedFor) {
  const Dataset& data = dataset();
  LoaderOptions resident = options(TransportKind::resident);
  const std::uint64_t ring = plan_memory(data, gpu(), options(TransportKind::mapped), 0).device_bytes;
  EXPECT_EQ(plan_memory(data, gpu(), resident, 1 << 20).device_bytes, ring + kSamples * kSample);
  // Half of what is free beside the ring.
  EXPECT_EQ(plan_memory(data, gpu(), resident, ring + 2 * 20 * kSample + 1).device_bytes,
            ring + 20 * kSample);
  EXPECT_SHARD_ERROR(plan_memory(data, gpu(), resident, ring), ErrorCode::resource, "not even one sample");
  resident.memory.resident_bytes = 7 * kSample + 1;
  EXPECT_EQ(plan_memory(data, gpu(), resident, 0).device_bytes, ring + 7 * kSample);
  resident.order = OrderMode::sequential;
  resident.world_size = 20;
  resident.batch_size = 5;
  EXPECT_EQ(resident_memory(data.info(), resident, 5, 0).all_bytes, 5 * kSample);
}

TEST_F(MemoryPlan, TakesTheFirstTransportThatNothingSpeaksAgainst) {
  const Dataset& data = dataset();
  LoaderOptions automatic = options(TransportKind::automatic);
  EXPECT_EQ(plan_memory(data, gpu(), automatic, 0).transport, TransportKind::mapped);
  automatic.memory.registered_bytes = shard_bytes(data.info()) - 1;
  EXPECT_EQ(plan_memory(data, gpu(), automatic, 0).transport, TransportKind::staged);
  EXPECT_EQ(plan_memory(data, host(), automatic, 0).transport, TransportKind::mapped);
  automatic.order = OrderMode::windowed;
  const LoaderMemory windowed = plan_memory(data, gpu(), automatic, 0);
  EXPECT_EQ(windowed.transport, TransportKind::mapped);
  EXPECT_EQ(windowed.registered_bytes, std::min(automatic.memory.registered_bytes, kSamples * kSample));
  automatic.memory.registered_bytes = 0;
  DeviceInfo other = gpu();
  other.registers_read_only = false;
  EXPECT_EQ(plan_memory(data, other, automatic, 0).transport, TransportKind::staged);

  constexpr TransportKind kMapped = TransportKind::mapped;
  constexpr TransportKind kStaged = TransportKind::staged;
  constexpr TransportKind kDirect = TransportKind::direct;
  using Kinds = std::vector<TransportKind>;
  const std::uint64_t all = shard_bytes(data.info());
  EXPECT_EQ(transports_to_try(data.info(), host(), automatic, all), (Kinds{kMapped, kStaged}));
  EXPECT_EQ(transports_to_try(data.info(), host(), automatic, all - 1), (Kinds{kDirect, kMapped, kStaged}));
  EXPECT_EQ(transports_to_try(data.info(), gpu(), automatic, all - 1), (Kinds{kMapped, kDirect, kStaged}));
  EXPECT_EQ(transports_to_try(data.info(), gpu(), options(kDirect), all - 1), (Kinds{kDirect}));
}

// Runs until shards are registered and the staging memory they replace is given back.
TEST_F(MemoryPlan, IsWhatALoaderThenCounts) {
  DatasetShape packed;
  packed.codec = {CodecSpec::Kind::packed};
  DatasetShape zstd;
  zstd.codec = {CodecSpec::Kind::zstd, 3};
  DatasetShape jpeg;
  jpeg.codec = CodecSpec(CodecSpec::Kind::jpeg);
  for (const DatasetShape& shape : {DatasetShape{}, packed, zstd, jpeg}) {
    const TempDir folder;
    write_dataset(folder.path(), shape);
    const auto data = Dataset::open(folder.path());
    std::vector<TransportKind> kinds = link_transports(folder.path());
    kinds.insert(kinds.end(), {TransportKind::automatic, TransportKind::resident});
    for (const TransportKind kind : kinds) {
      if (kind == TransportKind::mapped && shape.codec.kind == CodecSpec::Kind::zstd) continue;
      for (const bool as_gpu : {true, false}) {
        for (const CropKind crop : {CropKind::none, CropKind::random_resized}) {
          SCOPED_TRACE(std::string(to_string(kind)) + ", codec " + to_string(shape.codec) +
                       (as_gpu ? ", as a GPU" : ", host"));
          const std::shared_ptr<Device> device = as_gpu ? make_gpu_like_device(1) : make_host_device(1);
          LoaderOptions o = options(kind);
          o.memory.resident_bytes = 12'345;
          o.transform.crop = crop;
          if (crop != CropKind::none) {
            o.transform.crop_height = o.transform.crop_width = 8;
            o.transform.operations = {ops::Invert{}};
          }
          const LoaderMemory plan = plan_memory(data, *device, o);
          Loader loader(data, device, o);
          LoaderStats stats;
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          for (std::uint64_t epoch = 0; epoch < 2 || (stats.pinned_bytes > plan.pinned_bytes &&
                                                      std::chrono::steady_clock::now() < deadline);
               ++epoch) {
            run_epoch(*device, loader, epoch);
            stats = loader.stats();
          }
          EXPECT_EQ(stats.device_bytes, plan.device_bytes);
          EXPECT_EQ(stats.pinned_bytes, plan.pinned_bytes);
          EXPECT_EQ(stats.registered_bytes, plan.registered_bytes);
          if (kind != TransportKind::resident) {
            EXPECT_EQ(stats.transport, plan.transport);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shard::testing
