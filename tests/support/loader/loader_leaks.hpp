// Opening and closing loaders many times leaves nothing behind. One body for every device.
#pragma once

#include <array>
#include <iostream>

#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"
#include "support/process_use.hpp"
#include "support/rounds.hpp"

namespace shard::testing {

struct LeakCase {
  const char* name;
  // A device for one cycle (or the same one again); null: none on this machine.
  std::shared_ptr<Device> (*make)();
  bool counts_device_memory;
};
inline void PrintTo(const LeakCase& one, std::ostream* out) { *out << one.name; }

class LoaderLeaks : public ::testing::TestWithParam<LeakCase> {
 protected:
  void SetUp() override {
    if (!GetParam().make()) GTEST_SKIP() << "no such device on this machine";
    plain_ = dir_.path() / "plain";
    zstd_ = dir_.path() / "zstd";
    DatasetShape shape;
    std::filesystem::create_directory(plain_);
    write_dataset(plain_, shape);
    shape.codec = {CodecSpec::Kind::zstd, 1};
    std::filesystem::create_directory(zstd_);
    write_dataset(zstd_, shape);
  }

  // One loader's life: opened, used for a while, left in mid-epoch, with an error, or not opened at all.
  void cycle(std::uint64_t number) {
    constexpr std::array<TransportKind, 5> kKinds{TransportKind::automatic, TransportKind::mapped,
                                                  TransportKind::staged, TransportKind::resident,
                                                  TransportKind::direct};
    const auto device = GetParam().make();
    const bool zstd = number % 3 == 0;
    const auto data = Dataset::open(zstd ? zstd_ : plain_);
    LoaderOptions options;
    options.transport = kKinds[number % kKinds.size()];
    options.batch_size = 8;
    options.tail = Tail::pad;
    options.threads = 2;
    options.prefetch = 1 + static_cast<std::uint32_t>(number % 4);
    options.verify = number % 2 == 0 ? Verify::always : Verify::never;
    if (number % 6 < 2) options.transform.dtype = DType::f16;
    if (number % 11 == 0) options.memory.pinned_bytes = 100;
    if (number % 13 == 0) options.transform.flip = 2;
    std::optional<Batch> kept;
    try {
      Loader loader(data, device, options);
      for (std::uint64_t i = 0; i < number % 17; ++i) kept = loader.next();
      if (number % 7 == 0) kept.reset();
    } catch (const Error& error) {
      const bool expected = error.code() == ErrorCode::unsupported || error.code() == ErrorCode::resource ||
                            error.code() == ErrorCode::invalid_argument;
      EXPECT_TRUE(expected) << error.what();
      ++refused_;
    }
    if (kept) look(*device, *kept);
  }

  TempDir dir_;
  std::filesystem::path plain_;
  std::filesystem::path zstd_;
  std::uint64_t refused_ = 0;
};

TEST_P(LoaderLeaks, LeaveNothingBehindAfterManyOpenings) {
  const std::uint64_t count = rounds(1000, 150);
  constexpr std::uint64_t kWarmUp = 50;
  const std::uint64_t least_threads = 1;
  ProcessUse before;
  std::uint64_t free_before = 0;
  for (std::uint64_t i = 0; i < kWarmUp + count; ++i) {
    if (i == kWarmUp) {
      before = process_use_at_rest(dir_.path(), least_threads);
      if (GetParam().counts_device_memory) free_before = GetParam().make()->free_memory_bytes();
    }
    cycle(i);
    ASSERT_FALSE(HasFailure()) << "cycle " << i;
  }
  const ProcessUse after = process_use_at_rest(dir_.path(), before.threads);
  std::cout << refused_ << " of " << kWarmUp + count << " openings refused\n  before: " << before
            << "\n  after:  " << after << std::endl;
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.folder_mappings, 0);
  if (!kSanitized) {  // whose own memory grows
    EXPECT_LE(after.mappings, before.mappings + 16);
    EXPECT_LE(after.resident_bytes, before.resident_bytes + (std::int64_t{4} << 20U));
  }
  if (GetParam().counts_device_memory) {
    EXPECT_GE(GetParam().make()->free_memory_bytes() + (std::uint64_t{8} << 20U), free_before);
  }
  EXPECT_GT(refused_, 0U);
  EXPECT_LT(refused_, (kWarmUp + count) / 2);
}

}  // namespace shard::testing
