// Transport mapped on a device that does not read host memory: shards are registered ahead on a thread, and
// samples whose shard is not registered are staged.
#include <limits>

#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kShards = 5;
constexpr std::uint64_t kSamples = 20;  // of a shard
constexpr std::uint64_t kSampleBytes = 360;
constexpr std::uint64_t kImagesBytes = kShards * kSamples * kSampleBytes;

class LoaderAhead : public ::testing::Test {
 protected:
  void SetUp() override {
    DatasetShape shape;
    shape.shards.assign(kShards, kSamples);
    write_dataset(dir_.path(), shape);
    data_ = Dataset::open(dir_.path());
  }
  void TearDown() override {
    for (DeviceCall call : kDeviceCalls) EXPECT_EQ(device_->alive(call), 0) << to_string(call);
    EXPECT_EQ(device_->faults(), std::vector<std::string>{});
  }

  static LoaderOptions options() {
    LoaderOptions options;
    options.transport = TransportKind::mapped;
    options.batch_size = 10;
    options.threads = 2;
    options.prefetch = 2;
    return options;
  }
  static LoaderOptions windowed(std::uint32_t window) {
    LoaderOptions o = options();
    o.order = OrderMode::windowed;
    o.window_shards = window;
    return o;
  }
  std::uint64_t shard_file_bytes() const { return data_->info().shards[0].size_bytes; }
  void run_and_check(Loader& loader, std::uint64_t epoch) {
    const auto all = run_epoch(*device_, loader, epoch);
    ASSERT_EQ(all.size(), loader.batches_per_epoch());
    for (const Seen& seen : all)
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const auto expected = sample_bytes(seen.ids[i], kSampleBytes);
        ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * kSampleBytes, kSampleBytes))
            << "sample " << seen.ids[i];
      }
  }
  // Runs epochs until the condition holds.
  template <class Condition>
  std::uint64_t run_until(Loader& loader, std::uint64_t epoch, const Condition& condition) {
    for (const Deadline deadline; !condition() && !deadline.passed() && !HasFatalFailure(); ++epoch)
      run_and_check(loader, epoch);
    EXPECT_TRUE(condition());
    return epoch;
  }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<LimitedDevice> device_ = make_gpu_like_device(2);
};

// Registrations go on when the scope ends, however it does: before the loader, which joins its threads.
class Held {
 public:
  Held(LimitedDevice& device, std::uint64_t from) : device_(device) { device_.hold_registrations_from(from); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { device_.hold_registrations_from(std::numeric_limits<std::uint64_t>::max()); }

 private:
  LimitedDevice& device_;
};

TEST_F(LoaderAhead, StagesUntilShardsAreRegisteredAndGivesTheStagingMemoryBack) {
  for (Verify verify : {Verify::never, Verify::always}) {
    device_ = make_gpu_like_device(2);
    LoaderOptions o = options();
    o.verify = verify;
    Loader loader(*data_, device_, o);
    const std::uint64_t staging_bytes = 3 * 10 * kSampleBytes;
    const std::uint64_t columns_bytes = loader.stats().pinned_bytes - staging_bytes;
    {
      const Held held(*device_, 2);  // after the one that the loader tried when it was made
      run_and_check(loader, 0);
      EXPECT_EQ(to_string(loader.stats().transport), "mapped");
      EXPECT_EQ(loader.stats().pinned_bytes, columns_bytes + staging_bytes);
      EXPECT_EQ(loader.stats().registered_bytes, 0U);
      EXPECT_EQ(device_->copies_in_place(), 0U);
    }
    std::uint64_t epoch =
        run_until(loader, 1, [&] { return loader.stats().registered_bytes == kImagesBytes; });
    epoch = run_until(loader, epoch, [&] { return loader.stats().pinned_bytes == columns_bytes; });
    const std::uint64_t staged = device_->copies_from_pinned();
    const std::uint64_t in_place = device_->copies_in_place();
    run_and_check(loader, epoch);
    EXPECT_EQ(device_->copies_from_pinned(), staged);
    EXPECT_GE(device_->copies_in_place(), in_place + 70);  // 3 batches of it may have been begun before
    EXPECT_EQ(device_->calls(DeviceCall::registration), 1 + kShards);
    EXPECT_EQ(loader.stats().reason, "asked for");
  }
}

// No copy reads from two registrations, and samples lie across their ends.
TEST_F(LoaderAhead, RegistersShardsInPieces) {
  device_->set_piece_bytes(4096);
  Loader loader(*data_, device_, options());
  const std::uint64_t epoch =
      run_until(loader, 0, [&] { return loader.stats().registered_bytes == kImagesBytes; });
  run_and_check(loader, epoch);
  run_and_check(loader, epoch + 1);
  EXPECT_EQ(device_->calls(DeviceCall::registration), 1 + 2 * kShards);
  EXPECT_GT(device_->copies_in_place(), 0U);
}

TEST_F(LoaderAhead, TriesTheBeginOfAShardWhenItIsMade) {
  TempDir dir;
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 512, 512};
  shape.shards = {4};
  write_dataset(dir.path(), shape);
  LoaderOptions o = options();
  o.batch_size = 4;
  Loader loader(Dataset::open(dir.path()), device_, o);
  EXPECT_EQ(device_->calls(DeviceCall::registration), 1U);
  EXPECT_EQ(device_->most_registered_bytes(), std::uint64_t{2} << 20U);
  EXPECT_EQ(device_->registered_bytes(), 0U);
}

TEST_F(LoaderAhead, WaitsForRegistrationsWhereThereIsNoStagingMemory) {
  LoaderOptions o = options();
  o.memory.pinned_bytes = 3 * 10 * kSampleBytes - 1;
  {
    Loader loader(*data_, device_, o);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) run_and_check(loader, epoch);
    EXPECT_EQ(device_->copies_from_pinned(), 0U);
    EXPECT_NE(loader.stats().reason.find("need 10800 bytes of pinned memory; pinned_bytes is 10799"),
              std::string::npos)
        << loader.stats().reason;
  }
  o = windowed(kShards);
  o.batch_size = 50;
  o.memory.registered_bytes = shard_file_bytes();
  o.memory.pinned_bytes = kSampleBytes;
  Loader loader(*data_, device_, o);
  EXPECT_SHARD_ERROR(run_epoch(*device_, loader, 0), ErrorCode::resource, "raise registered_bytes");
}

TEST_F(LoaderAhead, WaitsForRegistrationsWhereStagingMemoryIsRefused) {
  device_->refuse_from(DeviceCall::pinned, 2, ErrorCode::resource, 1);  // the second buffer
  Loader loader(*data_, device_, options());
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) run_and_check(loader, epoch);
  EXPECT_EQ(device_->copies_from_pinned(), 0U);
  EXPECT_NE(loader.stats().reason.find("the test refuses pinned memory"), std::string::npos)
      << loader.stats().reason;
}

TEST_F(LoaderAhead, RegistersInALaterEpochWhatWasRefusedBefore) {
  device_->refuse_from(DeviceCall::registration, 2,
                       ErrorCode::resource);  // the first one is tried when it is made
  Loader loader(*data_, device_, options());
  const auto staged = [&] {
    return loader.stats().reason.find("shards go through staging") != std::string::npos;
  };
  const std::uint64_t epoch = run_until(loader, 0, staged);
  device_->refuse_from(DeviceCall::registration, 0, ErrorCode::resource);
  run_until(loader, epoch, [&] { return loader.stats().registered_bytes == kImagesBytes; });
  EXPECT_FALSE(staged()) << loader.stats().reason;
}

TEST_F(LoaderAhead, StagesWhatOfAWindowExceedsTheBudget) {
  LoaderOptions o = windowed(kShards);
  o.memory.registered_bytes = 2 * shard_file_bytes();
  Loader loader(*data_, device_, o);
  run_until(loader, 0, [&] { return device_->copies_in_place() > 0; });
  EXPECT_GT(device_->copies_from_pinned(), 0U);
  EXPECT_LE(device_->most_registered_bytes(), o.memory.registered_bytes);
  // Those that are registered stay: others in their place would cost more than they bring.
  run_until(loader, 100, [&] { return loader.stats().registered_bytes >= 2 * kSamples * kSampleBytes; });
  const std::uint64_t calls = device_->calls(DeviceCall::registration);
  for (std::uint64_t epoch = 200; epoch < 210; ++epoch) run_and_check(loader, epoch);
  EXPECT_EQ(device_->calls(DeviceCall::registration), calls);
}

// Without staging memory shards make room for those of the next window. Verification defers the copies of
// every batch, so that two batches hold shards at once meanwhile.
TEST_F(LoaderAhead, NeverGivesUpAShardThatABatchReads) {
  const std::uint64_t count = rounds(20, 4);
  for (std::uint64_t round = 0; round < count && !HasFailure(); ++round) {
    SCOPED_TRACE("SHARD_TEST_SEED=" + std::to_string(first_seed() + round));
    LoaderOptions o = windowed(1);
    o.batch_size = round % 2 == 0 ? 10 : 20;
    o.memory.pinned_bytes = 1;
    o.seed = first_seed() + round;
    o.memory.registered_bytes = (1 + round % 2) * shard_file_bytes();
    o.verify = round % 3 == 0 ? Verify::never : Verify::always;
    Loader loader(*data_, device_, o);
    const std::uint64_t before = device_->calls(DeviceCall::registration);
    run_until(loader, 0, [&] { return device_->calls(DeviceCall::registration) >= before + 3 * kShards; });
  }
  EXPECT_LE(device_->most_registered_bytes(), 2 * shard_file_bytes());
  EXPECT_GT(device_->copies_in_place(), 0U);
}

// Each batch is of one shard, and the budget holds one. Two batches are begun at a time, and verification
// keeps the shard of the first one: it has to end before the second one's shard has room.
TEST_F(LoaderAhead, VerifiesUnderABudgetThatHoldsTheShardsOfOneBatch) {
  LoaderOptions o = windowed(1);
  o.batch_size = kSamples;
  o.memory.registered_bytes = shard_file_bytes();
  o.memory.pinned_bytes = 1;  // nothing is staged
  o.verify = Verify::always;
  Loader loader(*data_, device_, o);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) run_and_check(loader, epoch);
  EXPECT_EQ(device_->copies_from_pinned(), 0U);
  EXPECT_LE(device_->most_registered_bytes(), o.memory.registered_bytes);
}

// What verification finds meanwhile is said of the batch that it belongs to.
TEST_F(LoaderAhead, SaysWhatVerificationFoundUnderSuchABudget) {
  const auto path = dir_.path() / "shard-3.safetensors";
  const std::uint64_t at = data_->shard(3).header().images_begin + 5 * kSampleBytes;
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::fseek(file, static_cast<long>(at), SEEK_SET);
  const int byte = std::fgetc(file);
  std::fseek(file, static_cast<long>(at), SEEK_SET);
  std::fputc(byte ^ 1, file);
  std::fclose(file);
  LoaderOptions o = windowed(1);
  o.order = OrderMode::sequential;
  o.batch_size = kSamples;
  o.memory.registered_bytes = shard_file_bytes();
  o.memory.pinned_bytes = 1;
  o.verify = Verify::always;
  Loader loader(*data_, device_, o);
  for (int batch = 0; batch < 3; ++batch) EXPECT_TRUE(loader.next());
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::corrupt, "sample 5");
}

// A rank that reads its own shards of an epoch registers those only.
TEST_F(LoaderAhead, RegistersOnlyTheShardsOfARank) {
  LoaderOptions o = options();
  o.partition = Partition::by_shard;
  o.world_size = kShards;
  o.batch_size = 4;
  Loader loader(*data_, device_, o);
  run_and_check(loader, 0);
  ASSERT_TRUE(comes_true([&] { return device_->calls(DeviceCall::registration) >= 2; }));
  EXPECT_LE(device_->registered_bytes(), 2 * kSamples * kSampleBytes);  // the next epoch is begun
}

}  // namespace
}  // namespace shard::testing
