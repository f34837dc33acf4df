// shardbench write: what it times was written and is there, its figures fit together, and nothing stays
// behind.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "commands/write/write_bench.hpp"
#include "support/expect_error.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kSmallFile = 5 * 8192 + 4096;  // with a part of a block at its end
constexpr WriteSizes kSmall{2 * kSmallFile + 8192, kSmallFile, 8192};
const std::atomic<bool> kGoOn{false};

class WriteBench : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(out()); }
  fs::path out() const { return dir_.path() / "out"; }
  fs::path json() const { return dir_.path() / "write.json"; }
  nlohmann::json report() const {
    std::ifstream in(json());
    return nlohmann::json::parse(in);
  }
  WriteRun write(WriteMethod method, bool preallocated, BlockSource& source) const {
    return write_once(out(), method, preallocated, kSmall, source, kGoOn);
  }

 private:
  testing::TempDir dir_;
};

TEST_F(WriteBench, EveryWayWritesTheSameBytes) {
  int written = 0;
  for (const WriteMethod method : {WriteMethod::buffered, WriteMethod::direct, WriteMethod::mapped}) {
    for (const bool preallocated : {false, true}) {
      SCOPED_TRACE(write_name(method, preallocated));
      BlockSource source(kSmall.block_bytes);
      WriteRun run;
      try {
        run = write(method, preallocated, source);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::unsupported) << error.what();
        ASSERT_NE(method, WriteMethod::buffered);
        fs::remove_all(out());
        fs::create_directory(out());
        continue;
      }
      ++written;
      ASSERT_EQ(run.files.size(), 3U);
      EXPECT_EQ(run.sample.bytes, kSmall.size_bytes);
      std::uint64_t index = 0;
      for (const fs::path& path : run.files) {
        std::ifstream in(path, std::ios::binary);
        const std::string found{std::istreambuf_iterator<char>(in), {}};
        std::string expected;
        const std::size_t size = path == run.files.back() ? 8192 : kSmallFile;
        while (expected.size() < size) {
          const auto block = source.block(index++);
          expected.append(reinterpret_cast<const char*>(block.data()), block.size());
        }
        expected.resize(size);
        EXPECT_TRUE(found == expected) << path;
      }
      EXPECT_EQ(check_written(run.files, kSmall, source), 6U + 6U + 1U);
      for (const fs::path& path : run.files) fs::remove(path);
    }
  }
  EXPECT_GE(written, 2);
}

TEST_F(WriteBench, FindsWhatIsNotThereAfterAll) {
  BlockSource source(kSmall.block_bytes);
  const WriteRun run = write(WriteMethod::buffered, false, source);
  std::fstream file(run.files[1], std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2 * 8192 + 100);
  file.put('\x00').put('\x01').put('\x02');
  file.close();
  EXPECT_SHARD_ERROR(check_written(run.files, kSmall, source), ErrorCode::corrupt,
                     "shard-00001\": what was written at 16384");
  fs::resize_file(run.files[0], kSmallFile - 1);
  EXPECT_SHARD_ERROR(check_written(run.files, kSmall, source), ErrorCode::corrupt,
                     "shard-00000\": what was written at 40960");
}

TEST_F(WriteBench, ReportsFiguresThatFitTogetherAndLeavesNothing) {
  const testing::ProgramResult run = testing::shardbench(
      "write " + out().string() + " --size 3MiB --shard-bytes 2MiB --repeat 2 --json " + json().string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("Fastest durable way: "), std::string::npos) << run.output;
  EXPECT_TRUE(fs::is_empty(out()));
  const auto found = report();
  EXPECT_EQ(found["benchmark"], "write");
  EXPECT_EQ(found["complete"], true);
  EXPECT_EQ(found["memory_bytes_per_second"].size(), 2U);
  ASSERT_EQ(found["cases"].size(), 6U);
  std::string best;
  double best_rate = 0;
  for (const auto& one : found["cases"]) {
    if (one.contains("problem")) {
      EXPECT_NE(run.output.find(one["problem"]), std::string::npos) << run.output;
      continue;
    }
    ASSERT_EQ(one["samples"].size(), 2U);
    EXPECT_EQ(one["checked_blocks"], 3);
    for (const auto& sample : one["samples"]) {
      const double bytes = sample["bytes"];
      const double write = sample["write_seconds"];
      const double sync = sample["sync_seconds"];
      EXPECT_EQ(bytes, 3U << 20U);
      EXPECT_GT(write, 0);
      EXPECT_GT(sync, 0);
      EXPECT_NEAR(sample["written_bytes_per_second"].get<double>() * write, bytes, 1);
      EXPECT_NEAR(sample["durable_bytes_per_second"].get<double>() * (write + sync), bytes, 1);
    }
    if (one["durable_bytes_per_second"] > best_rate) {
      best = one["method"];
      best_rate = one["durable_bytes_per_second"];
    }
  }
  EXPECT_NE(run.output.find("Fastest durable way: " + best + ", "), std::string::npos) << run.output;
}

TEST_F(WriteBench, RemovesWhatItWroteWhenEndedAndKeepsWhatItMeasured) {
  for (const int signal : {SIGTERM, SIGINT}) {
    fs::remove(json());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 2);
      ::execl(SHARDBENCH_PROGRAM, SHARDBENCH_PROGRAM, "write", out().c_str(), "--size", "4MiB", "--repeat",
              "100", "--json", json().c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!fs::exists(json()) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(fs::is_empty(out()));
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_TRUE(fs::is_empty(out()));
    EXPECT_EQ(report()["complete"], false);
    EXPECT_GE(report()["cases"][0]["samples"].size(), 1U);
  }
}

TEST_F(WriteBench, RefusesBadOptionsNamingTheirBounds) {
  WriteOptions options;
  options.folder = out();
  const auto refused = [&] { bench_write(options, kGoOn, [](const WriteResult&) {}); };
  options.sizes = {1 << 20, 1 << 20, 1000};
  EXPECT_SHARD_ERROR(refused(), ErrorCode::invalid_argument,
                     "--block 1000: expected a multiple of 4096, 4096 to 67108864");
  options.sizes = {1 << 20, 1 << 20, 128 << 20};
  EXPECT_SHARD_ERROR(refused(), ErrorCode::invalid_argument, "--block 134217728");
  options.sizes = {4096, 4096, 8192};
  EXPECT_SHARD_ERROR(refused(), ErrorCode::invalid_argument, "--block 8192: expected at most --size, 4096");
  options.sizes = {1 << 20, 0, 4096};
  EXPECT_SHARD_ERROR(refused(), ErrorCode::invalid_argument, "--shard-bytes 0");
  options.sizes = {(1 << 20) + 1, 1 << 20, 4096};
  EXPECT_SHARD_ERROR(refused(), ErrorCode::invalid_argument, "--size 1048577");
  EXPECT_TRUE(fs::is_empty(out()));
  options.sizes = {1 << 20, 1 << 20, 4096};
  options.folder = out() / "absent";
  EXPECT_SHARD_ERROR(refused(), ErrorCode::not_found, "absent\": no such folder");
  EXPECT_FALSE(fs::exists(options.folder));
  EXPECT_EQ(testing::shardbench("write " + out().string() + " --size lots").exit_code, 2);
}

TEST_F(WriteBench, RefusesWhatDoesNotFitNamingWhatItNeedsAndWhatIsFree) {
  WriteOptions options;
  options.folder = out();
  options.sizes.size_bytes = std::uint64_t{1} << 44U;
  const std::uint64_t needed = write_space_bytes(options.sizes);
  EXPECT_GT(needed, options.sizes.size_bytes);
  if (fs::space(out()).available >= needed) GTEST_SKIP() << "more than 16 TiB are free here";
  EXPECT_SHARD_ERROR(bench_write(options, kGoOn, [](const WriteResult&) {}), ErrorCode::resource,
                     "--size 17592186044416 needs " + std::to_string(needed) + " bytes of free space, ");
  EXPECT_TRUE(fs::is_empty(out()));
}

}  // namespace
}  // namespace shard::bench
