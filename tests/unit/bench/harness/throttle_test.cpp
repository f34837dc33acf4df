// A throttle keeps the model of the tier that it emulates.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "harness/throttle.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::bench {
namespace {

using std::chrono::milliseconds;

TEST(EmulatedTier, IsReadAsAPersonWritesIt) {
  EXPECT_EQ(parse_emulated("hdd").depth, 1U);
  EXPECT_GT(parse_emulated("nvme").bytes_per_second, parse_emulated("sata").bytes_per_second);
  EXPECT_GT(parse_emulated("http").latency_seconds, parse_emulated("nfs").latency_seconds);
  const EmulatedTier own = parse_emulated("bw=1.5GB/s,lat=250us,depth=7");
  EXPECT_DOUBLE_EQ(own.bytes_per_second, 1.5e9);
  EXPECT_DOUBLE_EQ(own.latency_seconds, 250e-6);
  EXPECT_EQ(own.depth, 7U);
  for (const char* bad : {"floppy", "", "bw=150", "bw=150MB", "lat=8ms", "bw=1MB/s,lat=8", "bw=-1MB/s",
                          "bw=1MB/s,depth=0", "bw=1MB/s,depth=2x", "bw=1MB/s,seek=1ms", "bw=nanMB/s"})
    EXPECT_SHARD_ERROR(parse_emulated(bad), ErrorCode::invalid_argument, "expected hdd, sata");
}

TEST(Throttle, SeeksOneAfterTheOtherAndNotWhereReadsGoOn) {
  Throttle disk({"", 100e6, 10e-3, 1});
  const auto now = Throttle::Clock::now();
  const auto after = [&](std::uint64_t file, std::uint64_t offset, std::uint64_t bytes) {
    return disk.due(file, offset, bytes, now) - now;
  };
  EXPECT_EQ(after(0, 0, 1'000'000), milliseconds(20));          // a seek and 10 ms of bytes
  EXPECT_EQ(after(0, 1'000'000, 1'000'000), milliseconds(30));  // goes on: bytes alone
  EXPECT_EQ(after(1, 0, 1'000'000), milliseconds(50));          // another file: waits, seeks
  EXPECT_EQ(after(1, 900'000'000, 1'000'000), milliseconds(70));
}

TEST(Throttle, LetsLatenciesPassTogetherAndBytesOneAfterTheOther) {
  Throttle network({"", 100e6, 10e-3, 3});
  const auto now = Throttle::Clock::now();
  std::vector<milliseconds> ends;
  for (std::uint64_t file = 0; file < 4; ++file)
    ends.push_back(std::chrono::duration_cast<milliseconds>(network.due(file, 0, 500'000, now) - now));
  EXPECT_EQ(ends, (std::vector<milliseconds>{milliseconds(15), milliseconds(20), milliseconds(25),
                                             milliseconds(30)}));  // the fourth began at 15
}

}  // namespace
}  // namespace shard::bench
