#include "transport/registered_shards.hpp"

#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "transport/populate.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kShardSamples = 20;
constexpr std::uint64_t kBytes = kShardSamples * 360;  // of a shard's images

// KiB of the mapping around an address that are in this process's page table.
std::uint64_t resident_kib_of(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      inside = begin <= at && at < end;
    } else if (inside && std::sscanf(line.c_str(), "Rss: %lu kB", &kib) == 1) {
      return kib;
    }
  }
  return 0;
}

class RegisteredShardsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DatasetShape shape;
    shape.shards.assign(4, kShardSamples);
    write_dataset(dir_.path(), shape);
    data_ = Dataset::open(dir_.path());
  }
  const std::byte* images(std::uint32_t shard) const { return data_->shard(shard).images().frame(0).data(); }
  static bool comes(RegisteredShards& shards, std::uint32_t shard) {
    return comes_true([&] { return shards.try_use(shard); });
  }

  TempDir dir_;
  std::optional<Dataset> data_;
  std::shared_ptr<LimitedDevice> limited_ = make_gpu_like_device(1);
};

TEST_F(RegisteredShardsTest, MakeRoomByWhatIsNotInUse) {
  RegisteredShards shards(*data_, limited_, 2 * kBytes);
  EXPECT_EQ(shards.bytes(), 0U);
  EXPECT_FALSE(shards.try_use(0));
  shards.prefetch({0, 1});
  ASSERT_TRUE(comes(shards, 0));
  ASSERT_TRUE(comes(shards, 1));
  ASSERT_TRUE(shards.try_use(1));  // two batches use it
  EXPECT_EQ(shards.bytes(), 2 * kBytes);
  shards.prefetch({2, 3});
  const std::uint32_t both[] = {0, 1};
  shards.release(both, Event());
  ASSERT_TRUE(comes(shards, 2));
  EXPECT_FALSE(limited_->is_registered(images(0)));
  EXPECT_TRUE(limited_->is_registered(images(1)));
  EXPECT_FALSE(shards.try_use(3));
  shards.release({both + 1, 1}, Event());
  ASSERT_TRUE(comes(shards, 3));
  EXPECT_FALSE(shards.holds_all());
  EXPECT_LE(limited_->most_registered_bytes(), 2 * kBytes);
}

// Registering others in their place would take longer than staging those.
TEST_F(RegisteredShardsTest, StayWhereOthersAreOnlyReadIn) {
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 256, 256};
  shape.shards.assign(4, kShardSamples);
  TempDir dir;
  write_dataset(dir.path(), shape);
  data_ = Dataset::open(dir.path());
  const std::uint64_t bytes = kShardSamples * 3 * 256 * 256;
  RegisteredShards shards(*data_, limited_, bytes);
  shards.prefetch({0, 1}, NoRoom::read_in);
  ASSERT_TRUE(comes(shards, 0));
  const std::uint32_t zero[] = {0};
  shards.release(zero, Event());
  ASSERT_TRUE(comes_true([&] { return resident_kib_of(images(1)) >= bytes / 1024; }));
  EXPECT_LT(resident_kib_of(images(2)), bytes / 1024);
  shards.prefetch({2, 3}, NoRoom::read_in);  // shard 0 is neither used nor wanted
  ASSERT_TRUE(comes_true([&] { return resident_kib_of(images(3)) >= bytes / 1024; }));
  EXPECT_TRUE(shards.try_use(0));
  for (const std::uint32_t other : {1U, 2U, 3U}) EXPECT_FALSE(shards.try_use(other));
  EXPECT_EQ(shards.bytes(), bytes);
  shards.release(zero, Event());
  shards.prefetch({1}, NoRoom::read_in);  // again, which reads it in again
  shards.use(1);                          // nothing else can be done: it makes room
  EXPECT_FALSE(shards.try_use(0));
  shards.prefetch({0}, NoRoom::evict);
  EXPECT_FALSE(shards.try_use(0));  // 1 is in use
  const std::uint32_t one[] = {1};
  shards.release(one, Event());
  EXPECT_TRUE(comes(shards, 0));
}

TEST_F(RegisteredShardsTest, AreGivenUpAfterTheDeviceHasReadThem) {
  StepDevice device;  // nothing is carried out until it is told to
  const auto shared = std::shared_ptr<Device>(&device, [](Device*) {});
  const auto stream = device.create_stream();
  const auto target = device.allocate_device(360);
  RegisteredShards shards(*data_, shared, kBytes);
  const std::uint32_t zero[] = {0};
  shards.prefetch({0});
  ASSERT_TRUE(comes(shards, 0));
  ASSERT_TRUE(shards.try_use(0));
  const CopyItem item{target->data(), images(0), 360};
  stream->copy({&item, 1});
  const Event copied = stream->record();
  shards.release(zero, copied);
  shards.release(zero, Event());  // a batch that failed and copied nothing
  shards.prefetch({1});
  ASSERT_TRUE(comes_true([&] { return !shards.try_use(0) || (shards.release(zero, Event()), false); }));
  EXPECT_FALSE(shards.try_use(1));
  device.step_to(copied);
  EXPECT_TRUE(comes(shards, 1));
  EXPECT_EQ(device.races(), std::vector<std::string>{});
}

// Where kernels copy, every second batch is copied in another stream,
// and the last one to be queued may be over first.
TEST_F(RegisteredShardsTest, AreGivenUpAfterEachStreamHasReadThem) {
  StepDevice device;
  const auto shared = std::shared_ptr<Device>(&device, [](Device*) {});
  const std::array streams{device.create_stream(), device.create_stream()};
  const auto target = device.allocate_device(720);
  RegisteredShards shards(*data_, shared, kBytes);
  const std::uint32_t zero[] = {0};
  shards.prefetch({0});
  ASSERT_TRUE(comes(shards, 0));
  std::array<Event, 2> copied;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(shards.try_use(0));
    const CopyItem item{target->data() + 360 * i, images(0), 360};
    streams[i]->copy({&item, 1});
    copied[i] = streams[i]->record();
    shards.release(zero, copied[i], streams[i].get());
  }
  shards.release(zero, Event());  // of comes()
  shards.prefetch({1});
  ASSERT_TRUE(comes_true([&] { return !shards.try_use(0) || (shards.release(zero, Event()), false); }));
  device.step_to(copied[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(shards.try_use(1)) << "it was given up under the copy of the first stream";
  device.step_to(copied[0]);
  EXPECT_TRUE(comes(shards, 1));
  EXPECT_EQ(device.races(), std::vector<std::string>{});
}

TEST_F(RegisteredShardsTest, MakeRoomForTheOneThatIsWaitedForByWhatIsWanted) {
  RegisteredShards shards(*data_, limited_, kBytes);
  const std::uint32_t zero[] = {0};
  shards.prefetch({0});
  ASSERT_TRUE(comes(shards, 0));
  EXPECT_SHARD_ERROR(shards.use(1), ErrorCode::resource, "raise registered_bytes or pinned_bytes");
  shards.release(zero, Event());
  shards.use(1);
  EXPECT_TRUE(limited_->is_registered(images(1)));
  EXPECT_FALSE(shards.try_use(0));
  EXPECT_LE(limited_->most_registered_bytes(), kBytes);
}

TEST_F(RegisteredShardsTest, AreTriedOnceAheadAndAgainWhenWaitedFor) {
  limited_->refuse_from(DeviceCall::registration, 3, ErrorCode::resource);
  RegisteredShards shards(*data_, limited_, 4 * kBytes);
  shards.prefetch({2, 1, 0, 3});
  ASSERT_TRUE(comes(shards, 2));
  const std::string said = "3 of 4 shards go through staging: the test refuses registration from call 3 on";
  ASSERT_TRUE(comes_true([&] { return shards.remark() == said; }));
  shards.prefetch({0, 3});
  EXPECT_SHARD_ERROR(shards.use(1), ErrorCode::resource, "the test refuses");
  EXPECT_EQ(limited_->calls(DeviceCall::registration), 6U);  // the first one was a part of shard 0
  EXPECT_EQ(shards.remark(), said);
  EXPECT_EQ(shards.bytes(), kBytes);
}

// Refusals are not for ever; a platform that still refuses is asked for one shard, and not for all.
TEST_F(RegisteredShardsTest, AreTriedAgainAfterARefusalWhenAsked) {
  const auto refused = [](int n) {
    return std::to_string(n) +
           " of 4 shards go through staging: the test refuses registration from call 3 on";
  };
  limited_->refuse_from(DeviceCall::registration, 3, ErrorCode::resource);
  RegisteredShards shards(*data_, limited_, 4 * kBytes);
  shards.retry_refused();  // there are none
  shards.prefetch({0, 1, 2, 3});
  ASSERT_TRUE(comes_true([&] { return shards.remark() == refused(3); }));
  EXPECT_EQ(limited_->calls(DeviceCall::registration), 5U);  // the first one was a part of shard 0
  shards.retry_refused();
  ASSERT_TRUE(comes_true([&] { return shards.remark() == refused(3); }));
  EXPECT_EQ(limited_->calls(DeviceCall::registration), 6U);
  limited_->refuse_from(DeviceCall::registration, 0, ErrorCode::resource);
  shards.retry_refused();
  ASSERT_TRUE(comes_true([&] { return shards.holds_all(); }));
  EXPECT_EQ(shards.remark(), "");
  EXPECT_EQ(shards.bytes(), 4 * kBytes);
}

TEST_F(RegisteredShardsTest, EndWithoutTheRegistrationThatIsUnderWay) {
  limited_->hold_registrations_from(2);  // after the one that is tried first
  const auto begin = std::chrono::steady_clock::now();
  {
    RegisteredShards shards(*data_, limited_, 4 * kBytes);
    shards.prefetch({0, 1, 2, 3});
    ASSERT_TRUE(comes_true([&] { return limited_->calls(DeviceCall::registration) >= 2; }));
    EXPECT_SHARD_ERROR(shards.use(3, [] { return true; }), ErrorCode::cancelled, "stopped");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(limited_->calls(DeviceCall::registration), 2U);
}

// The device is left to others between two pieces, unless a batch waits.
TEST_F(RegisteredShardsTest, PauseBetweenPiecesWhereNobodyWaits) {
  limited_->set_piece_bytes(4096);  // two pieces for each shard
  RegisteredShards shards(*data_, limited_, 4 * kBytes);
  limited_->slow_registrations(std::chrono::milliseconds(150));  // more than a second for all
  const auto seconds = [](auto begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  auto begin = std::chrono::steady_clock::now();
  shards.prefetch({0, 1, 2, 3});
  ASSERT_TRUE(
      comes_true([&] { return limited_->calls(DeviceCall::registration) == 3; }));  // one is the probe
  EXPECT_GE(seconds(begin), 0.15 + 16 * 0.15);
  limited_->slow_registrations(std::chrono::milliseconds(500));
  begin = std::chrono::steady_clock::now();
  shards.use(2);
  EXPECT_LT(seconds(begin), 8);  // which is one pause of them
}

TEST_F(RegisteredShardsTest, AreReadInUntilThatIsStopped) {
  TempDir dir;
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 256, 256};
  shape.shards = {20};
  write_dataset(dir.path(), shape);
  const auto data = Dataset::open(dir.path());
  const ShardReader& shard = data.shard(0);
  const std::uint64_t first = shard.header().images_begin;
  const auto images = shard.mapping().subspan(first, shard.header().images_end - first);
  const auto resident_kib = [&] { return resident_kib_of(images.data()); };
  std::stop_source stop;
  stop.request_stop();
  EXPECT_SHARD_ERROR(populate(shard, images, stop.get_token()), ErrorCode::cancelled, "stopped");
  EXPECT_LT(resident_kib(), images.size() / 1024);
  populate(shard, images, {});
  EXPECT_GE(resident_kib(), images.size() / 1024);
}

// What is wrong with one file says nothing of the others.
TEST_F(RegisteredShardsTest, AreTriedAgainEachForItselfWhereFilesWereCut) {
  RegisteredShards shards(*data_, limited_, 4 * kBytes);
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t i = 1; i < 3; ++i) {
    const std::filesystem::path path = data_->shard(i).path();
    sizes.push_back(std::filesystem::file_size(path));
    std::filesystem::resize_file(path, 1);
  }
  shards.prefetch({0, 1, 2, 3});
  ASSERT_TRUE(comes_true([&] { return shards.remark().rfind("2 of 4 shards", 0) == 0; }));
  std::filesystem::resize_file(data_->shard(2).path(), sizes[1]);
  shards.retry_refused();
  ASSERT_TRUE(comes_true([&] { return shards.remark().rfind("1 of 4 shards", 0) == 0; }));
  ASSERT_TRUE(comes(shards, 2));
  std::filesystem::resize_file(data_->shard(1).path(), sizes[0]);
  shards.retry_refused();
  ASSERT_TRUE(comes_true([&] { return shards.holds_all(); }));
}

}  // namespace
}  // namespace shard::testing
