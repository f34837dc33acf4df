// staged with fewer buffers than slots: they are filled again when the device has read them, and
// not before.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "support/device/step_device.hpp"
#include "support/loader/loader_fixture.hpp"
#include "transport/transport.hpp"

namespace shard::testing {
namespace {

class StagedTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBatch = 6;
  static constexpr std::size_t kSlots = 5;
  static constexpr std::uint64_t kSample = 360;

  void SetUp() override {
    DatasetShape shape;
    shape.shards.assign(3, 20);
    write_dataset(dir_.path(), shape);
    data_ = Dataset::open(dir_.path());
    options_.batch_size = kBatch;
    options_.prefetch = kSlots - 1;
    for (Slot& slot : slots_) {
      slot.number = static_cast<std::size_t>(&slot - slots_.data());
      slot.images = device_->allocate_device(kBatch * kSample);
    }
  }
  // A transport whose cache holds `buffers` batches in its half.
  std::unique_ptr<Transport> staged(std::uint64_t buffers) {
    TransportContext context;
    context.dataset = &*data_;
    context.forms = {make_stored_form(data_->info())};
    context.device = device_;
    context.options = &options_;
    context.copy_stream = stream_.get();
    context.pool = &pool_;
    context.cache_bytes = 2 * buffers * kBatch * kSample;
    return make_staged(context);
  }
  // Brings samples [n x batch, (n + 1) x batch) into slot n.
  void begin(Transport& transport, std::size_t n) {
    Slot& slot = slots_[n];
    slot.fetch.clear();
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      const std::uint64_t sample = n * kBatch + i;
      slot.fetch.push_back(
          {sample, 0, data_->locate(sample), slot.images->data() + i * kSample, kSample, i * kSample});
    }
    transport.begin(slot);
  }
  void expect_batch(std::size_t n) {
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      const Dataset::Location at = data_->locate(n * kBatch + i);
      EXPECT_EQ(std::memcmp(slots_[n].images->data() + i * kSample,
                            data_->shard(at.shard).images().frame(at.sample).data(), kSample),
                0)
          << "batch " << n << ", sample " << i;
    }
  }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<StepDevice> device_ = std::make_shared<StepDevice>();  // copies when it is told to
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  LoaderOptions options_;
  ThreadPool pool_{2};
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

TEST_F(StagedTest, FillsABufferAgainWhenTheDeviceHasReadIt) {
  const auto transport = staged(2);
  EXPECT_EQ(transport->stats().pinned_bytes, 2 * kBatch * kSample);
  for (std::size_t n = 0; n < kSlots; ++n) {
    if (n >= 2) {
      EXPECT_FALSE(transport->has_room()) << "batch " << n - 2 << " is still to be read";
      device_->step_to(slots_[n - 2].copied_event);
    }
    EXPECT_TRUE(transport->has_room());
    begin(*transport, n);
    transport->end(slots_[n]);
  }
  device_->step_to(slots_[kSlots - 1].copied_event);
  for (std::size_t n = 0; n < kSlots; ++n) expect_batch(n);
  EXPECT_EQ(device_->races(), std::vector<std::string>{});
}

TEST_F(StagedTest, HasABufferForEachSlotPastTheCache) {
  const auto transport = staged(1);
  EXPECT_EQ(transport->stats().pinned_bytes, kSlots * kBatch * kSample);
  for (std::size_t n = 0; n < kSlots; ++n) {
    EXPECT_TRUE(transport->has_room());
    begin(*transport, n);
    transport->end(slots_[n]);
  }
  device_->step_to(slots_[kSlots - 1].copied_event);
  for (std::size_t n = 0; n < kSlots; ++n) expect_batch(n);
}

}  // namespace
}  // namespace shard::testing
