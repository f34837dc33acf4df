// shardbench upload: every kind of row is measured on what was delivered, and on nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "commands/upload/upload_bench.hpp"
#include "commands/upload/upload_memory.hpp"
#include "support/device/forwarding_stream.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/programs/bench_calls.hpp"

namespace shard::bench {
namespace {

// Loses the last chunk of every batched copy.
class LossyStream final : public testing::ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  void copy(std::span<const CopyItem> items) override {
    ForwardingStream::copy(items.size() > 1 ? items.first(items.size() - 1) : items);
  }
};

class LossyDevice final : public Device {
 public:
  const DeviceInfo& info() const noexcept override { return inner_->info(); }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size) override {
    return inner_->allocate_pinned(size);
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size) override {
    return inner_->allocate_device(size);
  }
  std::uint64_t free_memory_bytes() override { return inner_->free_memory_bytes(); }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                   const std::stop_token& stop) override {
    return inner_->register_read_only(range, stop);
  }
  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<LossyStream>(inner_->create_stream());
  }
  void check() override { inner_->check(); }

 private:
  std::shared_ptr<Device> inner_ = make_host_device(1);
};

UploadOptions small() {
  UploadOptions options;
  options.memory_bytes = 1 << 20;
  options.chunks = {5000, 1 << 18};
  options.batch_sizes = {1, 6};
  options.sample_bytes = 1001;
  options.repeat = 2;
  options.seconds = 0.001;
  return options;
}

TEST(UploadBench, MeasuresEachMemoryDirectionAndNumberOfDevices) {
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1), make_host_device(1)};
  const UploadResult result = bench_upload(devices, small(), kGoOn, kNoProgress);
  std::set<std::string> names;
  for (const UploadCase& one : result.cases) {
    names.insert(upload_name(one));
    EXPECT_EQ(one.problem, "") << upload_name(one);
    ASSERT_EQ(one.bytes_per_second.size(), 2U);
    EXPECT_GT(one.bytes_per_second[0], 0);
  }
  EXPECT_EQ(result.cases.size(), 2U * 5U + 2U + 2U);
  EXPECT_EQ(names,
            (std::set<std::string>{"pageable", "pinned", "pinned, batched", "registered",
                                   "registered, batched", "pinned, from the device", "pinned, both ways",
                                   "pinned, 2 devices", "pinned, both ways, 2 devices"}));
  EXPECT_EQ(result.limit_bytes_per_second.size(), 2U);
  ASSERT_EQ(result.batches.size(), 2U);
  EXPECT_EQ(result.batches[1].batch_size, 6U);
  EXPECT_EQ(result.batches[1].memory, UploadMemory::registered);
  ASSERT_EQ(result.batches[1].seconds.size(), 2U);
  EXPECT_GT(result.batches[1].seconds[0], 0);
}

TEST(UploadBench, DoesNotTimeWhatDoesNotArrive) {
  const std::vector<std::shared_ptr<Device>> devices{std::make_shared<LossyDevice>()};
  for (const UploadCase& one : bench_upload(devices, small(), kGoOn, kNoProgress).cases) {
    EXPECT_EQ(one.problem.find("wrong") != std::string::npos, one.batched) << upload_name(one);
    EXPECT_EQ(one.bytes_per_second.empty(), one.batched) << upload_name(one);
  }
}

TEST(UploadBench, LeavesOutWhatThePlatformRefusesAndSaysWhy) {
  const auto device = std::make_shared<testing::LimitedDevice>(make_host_device(1), false);
  device->refuse_from(testing::DeviceCall::registration, 1, ErrorCode::unsupported);
  const std::vector<std::shared_ptr<Device>> devices{device};
  const UploadResult result = bench_upload(devices, small(), kGoOn, kNoProgress);
  for (const UploadCase& one : result.cases)
    EXPECT_EQ(one.problem.empty(), one.memory != UploadMemory::registered) << upload_name(one);
  EXPECT_EQ(result.batches[0].memory, UploadMemory::pinned);
  for (const testing::DeviceCall call : testing::kDeviceCalls) EXPECT_EQ(device->alive(call), 0);
}

TEST(UploadBench, RefusesOptionsOutOfBoundsAndStopsWhenAskedTo) {
  const std::vector<std::shared_ptr<Device>> devices{make_host_device(1)};
  const auto refused = [&](const UploadOptions& options, const std::string& piece) {
    EXPECT_SHARD_ERROR(bench_upload(devices, options, kGoOn, kNoProgress), ErrorCode::invalid_argument,
                       piece);
  };
  UploadOptions options = small();
  options.chunks = {0};
  refused(options, "--chunks 0: expected 1 to 1048576");
  options.chunks = {(1 << 20) + 1};
  refused(options, "--chunks 1048577: expected 1 to 1048576");
  options = small();
  options.memory_bytes = 100;
  refused(options, "--memory 100: expected 1048576 to ");
  options = small();
  options.batch_sizes = {2000};
  refused(options, "--batch-sizes 2000: expected 1 to 1047");
  options = small();
  options.sample_bytes = 0;
  refused(options, "--sample-bytes 0");
  const std::atomic<bool> stop{true};
  EXPECT_SHARD_ERROR(bench_upload(devices, small(), stop, kNoProgress), ErrorCode::cancelled, "stopped");
}

TEST(ShuffledPlaces, HoldEachPlaceOnce) {
  std::vector<std::uint64_t> places = shuffled_places(1000);
  EXPECT_FALSE(std::is_sorted(places.begin(), places.end()));
  std::sort(places.begin(), places.end());
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(places[i], i);
}

}  // namespace
}  // namespace shard::bench
