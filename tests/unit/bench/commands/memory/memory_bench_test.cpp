// shardbench memory: plan_memory() gives what the loader counts, to the byte, for every transport.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "commands/memory/memory_bench.hpp"
#include "data/load_data.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/programs/bench_calls.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

class MemoryBench : public ::testing::Test {
 protected:
  Dataset make(std::uint64_t samples, std::uint32_t side, std::uint64_t shards = 3) const {
    const std::string folder = (dir_.path() / ("data" + std::to_string(side))).string();
    make_sparse_dataset(folder, samples, shards, {DType::u8, Layout::nhwc, 3, side, side});
    return Dataset::open(folder);
  }
  // With reads_in_place off it stands for a GPU.
  static std::shared_ptr<Device> device(bool reads_in_place) {
    return std::make_shared<testing::LimitedDevice>(make_host_device(1), reads_in_place);
  }

 private:
  testing::TempDir dir_;
};

TEST_F(MemoryBench, PredictsWhatTheLoaderCountsToTheByte) {
  // Samples that are, and that are not, a multiple of the disk's blocks; batches smaller and larger than the
  // data set.
  for (const std::uint32_t side : {64U, 33U}) {
    const auto dataset = make(60, side);
    for (const bool reads_in_place : {true, false}) {
      for (const TransportKind transport :
           {TransportKind::automatic, TransportKind::mapped, TransportKind::staged, TransportKind::direct,
            TransportKind::resident}) {
        for (const bool identity : {true, false}) {
          SCOPED_TRACE(std::string(to_string(transport)) + (reads_in_place ? " in place, " : " as a GPU, ") +
                       (identity ? "stored, side " : "cropped f16, side ") + std::to_string(side));
          MemoryBenchOptions options;
          options.loader.transport = transport;
          options.loader.prefetch = 2;
          options.loader.threads = 1;
          options.batch_sizes = {1, 7, 100};
          if (transport == TransportKind::resident)
            options.loader.memory.resident_bytes = 20 * 3 * side * side + 5;
          if (!identity) {
            options.loader.transform.crop = CropKind::center;
            options.loader.transform.crop_height = options.loader.transform.crop_width = 20;
            options.loader.transform.dtype = DType::f16;
          }
          for (const MemoryCase& one :
               bench_memory(dataset, device(reads_in_place), options, kGoOn, kNoProgress)) {
            if (transport == TransportKind::direct && one.problem.find("O_DIRECT") != std::string::npos)
              continue;
            ASSERT_EQ(one.problem, "") << one.batch_size;
            EXPECT_EQ(one.predicted.device_bytes, one.measured.device_bytes) << one.batch_size;
            EXPECT_EQ(one.predicted.pinned_bytes, one.measured.pinned_bytes) << one.batch_size;
            EXPECT_EQ(one.predicted.registered_bytes, one.measured.registered_bytes) << one.batch_size;
            EXPECT_GE(one.batches, 6U);
            EXPECT_TRUE(one.predicted.transport == one.transport || transport == TransportKind::resident);
          }
        }
      }
    }
  }
}

// Frames of random sizes; a crop that is resized needs room for whole samples on a GPU.
TEST_F(MemoryBench, PredictsPackedSamplesToTheByte) {
  const testing::TempDir dir;
  testing::DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 40, 33};
  shape.codec = {CodecSpec::Kind::packed};
  testing::write_dataset(dir.path(), shape);
  const auto dataset = Dataset::open(dir.path());
  for (const bool reads_in_place : {true, false}) {
    for (const TransportKind transport :
         {TransportKind::automatic, TransportKind::staged, TransportKind::direct, TransportKind::resident}) {
      for (const CropKind crop : {CropKind::none, CropKind::random_resized}) {
        SCOPED_TRACE(std::string(to_string(transport)) + (reads_in_place ? " in place" : " as a GPU"));
        MemoryBenchOptions options;
        options.loader.transport = transport;
        options.loader.prefetch = 2;
        options.loader.threads = 1;
        options.batch_sizes = {7};
        options.loader.transform.crop = crop;
        if (crop != CropKind::none)
          options.loader.transform.crop_height = options.loader.transform.crop_width = 20;
        for (const MemoryCase& one :
             bench_memory(dataset, device(reads_in_place), options, kGoOn, kNoProgress)) {
          if (transport == TransportKind::direct && one.problem.find("O_DIRECT") != std::string::npos)
            continue;
          ASSERT_EQ(one.problem, "");
          EXPECT_EQ(one.predicted.device_bytes, one.measured.device_bytes);
          EXPECT_EQ(one.predicted.pinned_bytes, one.measured.pinned_bytes);
          EXPECT_EQ(one.predicted.registered_bytes, one.measured.registered_bytes);
        }
      }
    }
  }
}

TEST_F(MemoryBench, SeesTheProcessGrowByWhatWasPredicted) {
  const auto dataset = make(256, 224);
  MemoryBenchOptions options;
  options.loader.transport = TransportKind::staged;
  options.loader.prefetch = 1;
  options.loader.threads = 1;
  options.batch_sizes = {32, 128};
  for (const MemoryCase& one : bench_memory(dataset, make_host_device(1), options, kGoOn, kNoProgress)) {
    ASSERT_EQ(one.problem, "");
    const std::uint64_t predicted = one.predicted.device_bytes + one.predicted.pinned_bytes;
    EXPECT_LT(difference(predicted, one.process_after - one.process_before), 0.1) << one.batch_size;
  }
}

TEST_F(MemoryBench, LeavesOutWhatDoesNotFitAndGoesOn) {
  const auto dataset = make(60, 64);
  MemoryBenchOptions options;
  options.loader.transport = TransportKind::staged;
  options.loader.memory.pinned_bytes = 2'000'000;
  options.batch_sizes = {100, 2};
  const auto cases = bench_memory(dataset, make_host_device(1), options, kGoOn, kNoProgress);
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_NE(cases[0].problem.find("pinned_bytes is 2000000"), std::string::npos) << cases[0].problem;
  EXPECT_EQ(cases[1].problem, "");
  EXPECT_GT(cases[1].measured.pinned_bytes, 0U);
}

TEST_F(MemoryBench, RefusesBatchSizesOutOfBoundsAndStopsWhenAskedTo) {
  const auto dataset = make(60, 64);
  MemoryBenchOptions options;
  options.batch_sizes = {8, 0};
  EXPECT_SHARD_ERROR(bench_memory(dataset, make_host_device(1), options, kGoOn, kNoProgress),
                     ErrorCode::invalid_argument, "--batch-sizes 0: expected 1 to 65536");
  options.batch_sizes = {65'537};
  EXPECT_SHARD_ERROR(bench_memory(dataset, make_host_device(1), options, kGoOn, kNoProgress),
                     ErrorCode::invalid_argument, "--batch-sizes 65537");
  options.batch_sizes = {8};
  options.loader.prefetch = 65;
  EXPECT_SHARD_ERROR(bench_memory(dataset, make_host_device(1), options, kGoOn, kNoProgress),
                     ErrorCode::invalid_argument, "prefetch is 65");
  options.loader.prefetch = 1;
  const std::atomic<bool> stop{true};
  EXPECT_SHARD_ERROR(bench_memory(dataset, make_host_device(1), options, stop, kNoProgress),
                     ErrorCode::cancelled, "stopped");
}

TEST(Difference, IsAShareOfThePrediction) {
  EXPECT_EQ(difference(0, 0), 0);
  EXPECT_EQ(difference(100, 100), 0);
  EXPECT_EQ(difference(0, 5), 1);
  EXPECT_DOUBLE_EQ(difference(100, 90), 0.1);
  EXPECT_DOUBLE_EQ(difference(100, 102), 0.02);
}

}  // namespace
}  // namespace shard::bench
