// Shards that are cut, deleted, replaced or changed while an epoch runs: an error that names the shard, no
// signal, no hang, and a loader that can be destroyed and opened again.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "codec/sample_errors.hpp"
#include "support/deadline.hpp"
#include "support/device/limited_device.hpp"
#include "support/device/step_device.hpp"
#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

namespace fs = std::filesystem;

struct Way {
  const char* name;
  TransportKind transport;
  CodecSpec codec;
  bool gpu_like;
  bool refuses = false;  // registrations, but for the one that a loader tries when it is made
  bool step = false;     // the step device, which carries work out late and in an odd order
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

constexpr CodecSpec kNone;
constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 1};
constexpr CodecSpec kPacked{CodecSpec::Kind::packed};
constexpr CodecSpec kJpeg{CodecSpec::Kind::jpeg};
constexpr Way kWays[] = {{"mapped", TransportKind::mapped, kNone, false},
                         {"mapped_packed", TransportKind::mapped, kPacked, false},
                         {"mapped_gpu_like", TransportKind::mapped, kNone, true},
                         {"mapped_gpu_like_packed", TransportKind::mapped, kPacked, true},
                         {"mapped_gpu_like_staging", TransportKind::mapped, kNone, true, true},
                         {"mapped_jpeg", TransportKind::mapped, kJpeg, false},
                         {"mapped_gpu_like_jpeg", TransportKind::mapped, kJpeg, true},
                         {"staged_gpu_like_jpeg", TransportKind::staged, kJpeg, true},
                         {"resident_gpu_like_jpeg", TransportKind::resident, kJpeg, true},
                         {"direct_jpeg", TransportKind::direct, kJpeg, false},
                         {"staged", TransportKind::staged, kNone, false},
                         {"staged_zstd", TransportKind::staged, kZstd, false},
                         {"staged_packed", TransportKind::staged, kPacked, false},
                         {"staged_gpu_like", TransportKind::staged, kNone, true},
                         {"resident", TransportKind::resident, kNone, false},
                         {"resident_packed", TransportKind::resident, kPacked, false},
                         {"direct", TransportKind::direct, kNone, false},
                         {"direct_packed", TransportKind::direct, kPacked, false},
                         {"mapped_step", TransportKind::mapped, kNone, false, false, true},
                         {"staged_step", TransportKind::staged, kNone, false, false, true},
                         {"resident_step", TransportKind::resident, kNone, false, false, true},
                         {"direct_step", TransportKind::direct, kNone, false, false, true}};

class LoaderFaults : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    shape_.spec = {DType::u8, Layout::nhwc, 3, 40, 30};
    shape_.codec = GetParam().codec;
    fs::create_directory(data_dir());
    write_dataset(data_dir(), shape_);
    fs::copy(data_dir(), dir_.path() / "pristine", fs::copy_options::recursive);
    device_ = make_host_device(2);
    if (GetParam().step) {
      const auto step = std::make_shared<StepDevice>();
      step->run_freely(first_seed());
      device_ = step;
    } else {
      limited_ = std::make_shared<LimitedDevice>(device_, !GetParam().gpu_like);
      if (GetParam().refuses) limited_->refuse_registrations_ahead(ErrorCode::resource);
      device_ = limited_;
    }
    try {
      Loader(open_dataset(), device_, options());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || GetParam().transport != TransportKind::direct) throw;
      GTEST_SKIP() << error.what();
    }
  }

  fs::path data_dir() const { return dir_.path() / "data"; }
  fs::path shard(int number) const {
    return data_dir() / ("shard-" + std::to_string(number) + ".safetensors");
  }
  Dataset open_dataset() const { return Dataset::open(data_dir()); }
  // In the order of the data set, so that shard 2 (samples 57 to 97) is read long after the first batch.
  static LoaderOptions options() {
    LoaderOptions options;
    options.transport = GetParam().transport;
    options.order = OrderMode::sequential;
    options.batch_size = 8;
    options.threads = 2;
    options.prefetch = 1;
    return options;
  }
  // Puts the shard back as it was, under its name.
  void restore(int number) const {
    const fs::path fresh = dir_.path() / "fresh";
    fs::copy_file(dir_.path() / "pristine" / shard(number).filename(), fresh);
    fs::rename(fresh, shard(number));
  }
  // Writes the bytes of the shard again where they were: the file that is open is whole again.
  void restore_in_place(int number) const {
    const fs::path pristine = dir_.path() / "pristine" / shard(number).filename();
    const std::vector<std::byte> bytes = file_bytes(pristine);
    const int fd = ::open(shard(number).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(bytes.size())), 0);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::close(fd), 0);
  }
  static std::vector<std::byte> file_bytes(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
  }
  void flip_byte(int number, std::uint64_t at) const {
    const int fd = ::open(shard(number).c_str(), O_RDWR | O_CLOEXEC);
    char byte = 0;
    ASSERT_EQ(::pread(fd, &byte, 1, static_cast<off_t>(at)), 1);
    byte = static_cast<char>(byte ^ 0x10);
    ASSERT_EQ(::pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
    ::close(fd);
  }
  // Where stored sample `sample` of the shard lies, somewhere inside.
  static std::uint64_t inside_sample(const Dataset& data, std::uint32_t number, std::uint64_t sample) {
    const ShardReader& reader = data.shard(number);
    const std::span<const std::byte> frame = reader.images().frame(sample);
    return static_cast<std::uint64_t>(frame.data() - reader.mapping().data()) + frame.size() / 2;
  }
  void take_one(Loader& loader) {
    auto batch = loader.next();
    ASSERT_TRUE(batch);
    look(*device_, *batch);
  }
  std::vector<Seen> drain(Loader& loader) {
    std::vector<Seen> all;
    while (auto batch = loader.next()) all.push_back(look(*device_, *batch));
    return all;
  }
  // What the sample decodes to.
  std::vector<std::byte> expected_sample(const Dataset& pristine, std::uint64_t id) const {
    if (shape_.codec.kind != CodecSpec::Kind::jpeg) return sample_of(shape_, id);
    const Dataset::Location at = pristine.locate(id);
    std::vector<std::byte> pixels(shape_.spec.size_bytes());
    pristine.shard(at.shard).images().read(at.sample, pixels);
    return pixels;
  }
  void expect_right(const std::vector<Seen>& all, std::uint64_t batches) {
    EXPECT_EQ(all.size(), batches);
    const Dataset pristine = Dataset::open(dir_.path() / "pristine");
    for (const Seen& seen : all)
      for (std::size_t i = 0; i < seen.ids.size(); ++i) {
        const auto expected = expected_sample(pristine, seen.ids[i]);
        ASSERT_EQ(0, std::memcmp(expected.data(), seen.images.data() + i * 3600, 3600))
            << "sample " << seen.ids[i];
      }
  }

  TempDir dir_;
  DatasetShape shape_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<LimitedDevice> limited_;  // the same, where it is one
};
class FaultsOfMapped : public LoaderFaults {};    // the device reads the mapping itself
class FaultsOfResident : public LoaderFaults {};  // samples stay on the device

TEST_P(LoaderFaults, NamesAShardThatIsCutAtAnyLength) {
  const std::uint64_t size = fs::file_size(shard(2));
  for (std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{4096}, size / 2, size - 1}) {
    SCOPED_TRACE("cut to " + std::to_string(length));
    {
      Loader loader(open_dataset(), device_, options());
      take_one(loader);
      fs::resize_file(shard(2), length);
      EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "shard-2.safetensors");
    }
    EXPECT_SHARD_ERROR(open_dataset(), ErrorCode::corrupt, "shard-2.safetensors");
    restore(2);
    Loader again(open_dataset(), device_, options());
    expect_right(drain(again), again.batches_per_epoch());
  }
}

// Every shard has been read already when one of them is cut.
TEST_P(LoaderFaults, NamesAShardThatIsCutInALaterEpoch) {
  const std::uint64_t size = fs::file_size(shard(0));
  // One byte less: the page is still there, and zeros in it.
  for (std::uint64_t length : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{20'000}, size - 1}) {
    SCOPED_TRACE("cut to " + std::to_string(length));
    LoaderOptions shuffled = options();
    shuffled.order = OrderMode::shuffle;
    shuffled.tail = Tail::wrap;  // the first epoch has all of the samples
    Loader loader(open_dataset(), device_, shuffled);
    expect_right(drain(loader), loader.batches_per_epoch());
    loader.start_epoch(1);
    take_one(loader);
    fs::resize_file(shard(0), length);
    if (GetParam().transport == TransportKind::resident && length > 0)  // reads only labels in a later epoch
      expect_right(drain(loader), loader.batches_per_epoch() - 1);
    else
      EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "shard-0.safetensors");
    restore(0);
  }
}

TEST_P(LoaderFaults, RepeatsTheErrorInsteadOfEndingTheEpoch) {
  Loader loader(open_dataset(), device_, options());
  take_one(loader);
  fs::resize_file(shard(2), 4096);
  for (int i = 0; i < 3; ++i) EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "shard-2.safetensors");
  auto again = [&] {
    for (Batch& batch : loader.epoch(0)) look(*device_, batch);
  };
  EXPECT_SHARD_ERROR(again(), ErrorCode::corrupt, "shard-2.safetensors");
  loader.start_epoch(5);
  EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "shard-2.safetensors");
}

// What is on the device already is delivered.
TEST_P(LoaderFaults, NamesAShardThatWasDeletedWhileOpen) {
  Loader loader(open_dataset(), device_, options());
  expect_right(drain(loader), 12);
  for (int i = 0; i < 4; ++i) fs::remove(shard(i));
  loader.start_epoch(1);
  if (GetParam().transport == TransportKind::resident) return expect_right(drain(loader), 12);
  EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "the file is gone");
}

TEST_P(LoaderFaults, NamesAShardThatWasDeletedBeforeItWasOpened) {
  const auto data = open_dataset();
  fs::remove(shard(2));
  const auto run = [&] {
    Loader loader(data, device_, options());
    drain(loader);
  };
  EXPECT_SHARD_ERROR(run(), ErrorCode::not_found, "shard-2.safetensors");
}

TEST_P(LoaderFaults, NamesAShardThatWasReplacedWhileOpen) {
  Loader loader(open_dataset(), device_, options());
  expect_right(drain(loader), 12);
  fs::copy_file(shard(3), dir_.path() / "other");
  fs::rename(dir_.path() / "other", shard(2));
  loader.start_epoch(1);
  if (GetParam().transport == TransportKind::resident) return expect_right(drain(loader), 12);
  EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt,
                     "shard-2.safetensors\": the file was replaced by another one");
}

TEST_P(LoaderFaults, NamesAShardThatWasReplacedBeforeItWasOpened) {
  // Another data set with shards of the same shape: the sizes agree, the bytes do not.
  TempDir other;
  DatasetShape shape;
  shape.spec = {DType::u8, Layout::nhwc, 3, 40, 30};
  shape.shards = {3, 20, 41, 37};
  shape.codec = GetParam().codec;
  write_dataset(other.path(), shape);
  const auto data = open_dataset();
  fs::copy_file(other.path() / "shard-2.safetensors", other.path() / "moving");
  fs::remove(shard(2));
  fs::copy_file(other.path() / "moving", shard(2));
  const auto run = [&] {
    Loader loader(data, device_, options());
    drain(loader);
  };
  EXPECT_SHARD_ERROR(run(), ErrorCode::corrupt, "shard-2.safetensors");
}

TEST_P(LoaderFaults, NamesTheSampleWhoseByteChangesWhileAnEpochRuns) {
  const auto data = open_dataset();
  LoaderOptions checked = options();
  checked.verify = Verify::always;
  Loader loader(data, device_, checked);
  take_one(loader);
  flip_byte(2, inside_sample(data, 2, 33));
  EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "shard-2.safetensors");
  loader.start_epoch(1);
  EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "sample 33");
  flip_byte(2, inside_sample(data, 2, 33));  // as it was
  for (std::uint64_t epoch = 2; epoch < 4; ++epoch) {
    loader.start_epoch(epoch);
    expect_right(drain(loader), 12);
  }
}

// Batches that are made as one fail as if each were made alone.
TEST_P(LoaderFaults, DeliversTheBatchesBeforeTheOneWithADamagedSample) {
  const auto data = open_dataset();
  flip_byte(2, inside_sample(data, 2, 33));  // sample 90, in batch 11
  for (const std::uint32_t together : {1U, 2U, 4U, 5U, 12U}) {
    LoaderOptions checked = options();
    checked.verify = Verify::always;
    checked.together = together;
    Loader loader(data, device_, checked);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(epoch);
      std::vector<Seen> before;
      const auto run = [&] {
        while (auto batch = loader.next()) before.push_back(look(*device_, *batch));
      };
      EXPECT_SHARD_ERROR(run(), ErrorCode::corrupt, "sample 33");
      expect_right(before, 11);
      EXPECT_SHARD_ERROR(static_cast<void>(loader.next()), ErrorCode::corrupt, "sample 33");
    }
  }
}

// The loader has checked the size of the shard's file, and the file is cut before its bytes are read: as with
// a page that its disk cannot read, only the read itself finds out.
TEST_P(FaultsOfMapped, NamesTheSampleThatTheDeviceCouldNotRead) {
  const auto data = open_dataset();
  LoaderOptions o = options();
  o.batch_size = 1;
  Loader loader(data, device_, o);
  std::uint64_t epoch = 0;
  for (std::uint64_t staged = 1; staged != limited_->copies_from_pinned(); ++epoch) {
    staged = limited_->copies_from_pinned();  // until every shard is open, and registered
    loader.start_epoch(epoch);
    expect_right(drain(loader), 101);
  }
  const std::span<const std::byte> mapping = data.shard(2).mapping();
  for (const std::uint64_t last = epoch + 3; epoch < last; ++epoch) {
    SCOPED_TRACE(epoch);
    std::atomic<bool> cut{false};
    loader.start_epoch(epoch);
    take_one(loader);  // so nothing of the epoch before is read any more
    limited_->call_before_reads([&](const std::byte* source) {
      const bool of_shard = mapping.data() <= source && source < mapping.data() + mapping.size();
      if (of_shard && !cut.exchange(true)) fs::resize_file(shard(2), 4096);
    });
    for (std::uint64_t i = 1; i < 57; ++i) take_one(loader);
    auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::corrupt, "shard-2.safetensors\": sample 0 (\"k57\")");
    EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::corrupt, "the file changed while it was in use");
    limited_->call_before_reads({});
    restore_in_place(2);
    EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::io, "shard-2.safetensors\": sample 0 (\"k57\")");
  }
  loader.start_epoch(epoch);
  expect_right(drain(loader), 101);
}

TEST_P(FaultsOfResident, KeepsNothingOnTheDeviceThatCouldNotBeRead) {
  const auto data = open_dataset();
  LoaderOptions o = options();
  o.batch_size = 1;
  Loader loader(data, device_, o);
  const std::span<const std::byte> mapping = data.shard(2).mapping();
  bool cut = false;
  limited_->call_before_reads([&](const std::byte* source) {
    const bool of_shard = mapping.data() <= source && source < mapping.data() + mapping.size();
    if (of_shard && !std::exchange(cut, true)) fs::resize_file(shard(2), 4096);
  });
  // The first one that is read in place: those before it may have come through staging memory.
  EXPECT_SHARD_ERROR(drain(loader), ErrorCode::corrupt, "shard-2.safetensors\": sample ");
  limited_->call_before_reads({});
  EXPECT_TRUE(cut);
  restore_in_place(2);
  for (std::uint64_t epoch = 1; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    expect_right(drain(loader), 101);
  }
}

TEST(StepFaults, NamesTheSampleThatTheDeviceCouldNotRead) {
  TempDir dir;
  write_dataset(dir.path(), {});
  const fs::path shard = dir.path() / "shard-0.safetensors";
  const auto data = Dataset::open(dir.path());
  const auto device = std::make_shared<StepDevice>();  // nothing is carried out yet
  LoaderOptions o;
  o.transport = TransportKind::mapped;
  o.order = OrderMode::sequential;
  o.batch_size = 1;
  o.prefetch = 1;
  o.memory.pinned_bytes = 1;  // nothing is staged: every sample is read in place
  Loader loader(data, device, o);
  auto batch = loader.next();
  ASSERT_TRUE(batch);
  fs::copy_file(shard, dir.path() / "whole");
  fs::resize_file(shard, 4096);
  device->run_freely(first_seed());
  EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::corrupt, "shard-0.safetensors\": sample 0 (\"k0\")");
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::corrupt, "sample 0 (\"k0\")");
  EXPECT_SHARD_ERROR(loader.next(), ErrorCode::corrupt, "sample 0 (\"k0\")");
  std::ifstream whole(dir.path() / "whole", std::ios::binary);
  std::fstream(shard, std::ios::binary | std::ios::in | std::ios::out) << whole.rdbuf();
  loader.start_epoch(1);
  // The file is whole now, but this batch is not, which is no matter of the new epoch.
  EXPECT_SHARD_ERROR(batch->wait(), ErrorCode::io, "sample 0 (\"k0\")");
  EXPECT_TRUE(loader.next().has_value());
  batch.reset();
  const auto all = run_epoch(*device, loader, 2);
  ASSERT_EQ(all.size(), data.size());
  for (const Seen& seen : all) EXPECT_EQ(seen.images, sample_bytes(seen.ids[0], 360)) << seen.ids[0];
}

// A shard that nobody has read yet is not opened to look for what failed, and what failed is said.
TEST(FailedWaits, LookAtOpenShardsOnlyAndKeepTheFirstError) {
  TempDir dir;
  write_dataset(dir.path(), {});
  const auto data = Dataset::open(dir.path());
  const auto failed = [&] {
    try {
      throw Error(ErrorCode::io, "the device was lost");
    } catch (const Error&) {
      rethrow_named(data);
    }
  };
  static_cast<void>(data.shard(1));
  fs::remove(dir.path() / "shard-0.safetensors");  // opening it would fail
  EXPECT_SHARD_ERROR(failed(), ErrorCode::io, "the device was lost");
  for (const std::uint32_t unused : {0U, 2U, 3U}) EXPECT_EQ(data.opened(unused), nullptr);
  fs::resize_file(dir.path() / "shard-1.safetensors", 4096);
  EXPECT_SHARD_ERROR(failed(), ErrorCode::io, "the device was lost");
  EXPECT_SHARD_ERROR(failed(), ErrorCode::io, "shard-1.safetensors\": the file changed");
}

// The file is whole again: the same loader goes on, however often and wherever it was cut.
TEST_P(LoaderFaults, GoesOnInTheNextEpochWhenTheFileIsWholeAgain) {
  const std::uint64_t size = fs::file_size(shard(2));
  const std::uint64_t count = rounds(8, 4);
  LoaderOptions o = options();
  o.order = OrderMode::shuffle;
  o.tail = Tail::wrap;
  Loader loader(open_dataset(), device_, o);
  expect_right(drain(loader), loader.batches_per_epoch());
  std::uint64_t failed = 0;
  const bool reads = GetParam().transport != TransportKind::resident;  // in a later epoch
  const Deadline deadline;
  // On a busy machine a cut may come after the epoch, more than once.
  const auto too_few = [&] { return reads && failed == 0 && !deadline.passed(); };
  for (std::uint64_t round = 0; (round < count || too_few()) && !HasFailure(); ++round) {
    SCOPED_TRACE("SHARD_TEST_SEED=" + std::to_string(first_seed() + round));
    std::atomic<std::uint64_t> taken{0};
    std::thread cutter([&] {
      while (taken < round % 8) std::this_thread::yield();
      fs::resize_file(shard(2), (first_seed() + round) * 7919 % size);
    });
    loader.start_epoch(2 * round + 1);
    for (bool more = true; more; ++taken) {
      try {
        auto batch = loader.next();
        more = batch.has_value();
        if (batch) look(*device_, *batch);  // bytes that change while they are read are nobody's promise
      } catch (const Error& error) {
        more = false;
        ++failed;
        EXPECT_NE(std::string(error.what()).find("shard-2.safetensors"), std::string::npos) << error.what();
      }
    }
    taken = 1000;
    cutter.join();
    loader.cancel();
    restore_in_place(2);
    loader.start_epoch(2 * round + 2);
    expect_right(drain(loader), loader.batches_per_epoch());
  }
  EXPECT_EQ(failed > 0, reads);
}

// No moment of a cut ends the process or hands out bytes that were never there.
TEST_P(LoaderFaults, SurvivesACutAtAnyMoment) {
  const std::uint64_t count = rounds(40, 10);
  for (std::uint64_t round = 0; round < count && !HasFailure(); ++round) {
    SCOPED_TRACE("SHARD_TEST_SEED=" + std::to_string(first_seed() + round));
    LoaderOptions shuffled = options();
    shuffled.order = OrderMode::shuffle;
    shuffled.seed = first_seed() + round;
    shuffled.prefetch = 1 + static_cast<std::uint32_t>(round % 4);
    shuffled.verify = Verify::always;
    shuffled.transform.flip = round % 2 == 0 ? 0.0 : 1.0;
    const auto data = open_dataset();
    std::atomic<std::uint64_t> taken{0};
    std::atomic<bool> cut{false};
    std::thread cutter([&] {
      while (taken < round % 13) std::this_thread::yield();
      fs::resize_file(shard(1), round % 3 == 0 ? 0 : 9000);
      cut = true;
    });
    std::string error;
    {
      Loader loader(data, device_, shuffled);
      try {
        // Until an epoch began with the cut shard, and did not fail.
        bool was_cut = false;
        for (std::uint64_t epoch = 0; !was_cut; ++epoch) {
          was_cut = cut;
          loader.start_epoch(epoch);
          while (auto batch = loader.next()) {
            look(*device_, *batch);
            ++taken;
          }
        }
      } catch (const Error& caught) {
        error = caught.what();
        // io: in the midst of being opened
        EXPECT_TRUE(caught.code() == ErrorCode::corrupt || caught.code() == ErrorCode::io) << error;
      }
      taken = 1000;
    }
    cutter.join();
    const bool may_have_it_all = GetParam().transport == TransportKind::resident;
    EXPECT_TRUE(may_have_it_all || error.find("shard-1.safetensors") != std::string::npos) << error;
    restore(1);
  }
}

std::string name_of(const ::testing::TestParamInfo<Way>& way) { return way.param.name; }
std::vector<Way> ways_of(TransportKind kind) {
  std::vector<Way> ways;
  for (const Way& way : kWays)
    if (way.transport == kind && !way.refuses && !way.step) ways.push_back(way);
  return ways;
}
INSTANTIATE_TEST_SUITE_P(Ways, LoaderFaults, ::testing::ValuesIn(kWays), name_of);
INSTANTIATE_TEST_SUITE_P(Ways, FaultsOfMapped, ::testing::ValuesIn(ways_of(TransportKind::mapped)), name_of);
INSTANTIATE_TEST_SUITE_P(Ways, FaultsOfResident, ::testing::ValuesIn(ways_of(TransportKind::resident)),
                         name_of);

}  // namespace
}  // namespace shard::testing
