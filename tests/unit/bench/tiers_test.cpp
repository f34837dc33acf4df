// What shardbench tiers is made of: a throttle that keeps its model, a page cache that is really empty, rows
// that say what they hold, charts.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "bench_dataset.hpp"
#include "commands.hpp"
#include "commands/tiers/tiers_bench.hpp"
#include "expect_error.hpp"
#include "feeds/tier_data.hpp"
#include "harness/csv.hpp"
#include "harness/throttle.hpp"
#include "limits/page_cache.hpp"
#include "report/chart_file.hpp"
#include "report/section.hpp"
#include "report/svg.hpp"
#include "shard/error.hpp"
#include "temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
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

class PageCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_, std::ios::binary) << std::string(1 << 20U, 'x');
    if (is_memory(dir_.path())) GTEST_SKIP() << "the folder for temporary files is memory";
    const int fd = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
    if (cache_state(files()).share() > 0) GTEST_SKIP() << "the system does not drop, or does not say";
  }
  std::vector<fs::path> files() const { return {file_}; }
  testing::TempDir dir_;
  fs::path file_ = dir_.path() / "file";
};

TEST_F(PageCache, IsEmptyOfTheseFilesAfterADropAndFullAfterARead) {
  const fs::path other = dir_.path() / "other";
  std::ofstream(other, std::ios::binary) << std::string(1 << 20U, 'y');
  const std::vector<fs::path> others{other};
  warm_cache(others);
  warm_cache(files());
  EXPECT_EQ(cache_state(files()).share(), 1);
  EXPECT_EQ(drop_cache(files()).share(), 0);
  EXPECT_EQ(cache_state(others).share(), 1);  // not these
}

TEST_F(PageCache, SaysWhatCouldNotBeDropped) {
  const int fd = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = ::mmap(nullptr, 1 << 20U, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  ::close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_GT(drop_cache(files()).share(), 0.9);
  ::munmap(mapped, 1 << 20U);
  EXPECT_EQ(drop_cache(files()).share(), 0);
}

TEST(PageCacheErrors, NameTheFile) {
  const std::vector<fs::path> absent{"/nowhere/at-all"};
  EXPECT_SHARD_ERROR(drop_cache(absent), ErrorCode::not_found, "/nowhere/at-all");
}

TEST(MatchImages, NamesTheFirstThatIsNotThere) {
  const testing::TempDir dir;
  testing::make_photos(dir.path() / "photos", 6);
  testing::make_dataset(dir.path() / "photos", dir.path() / "data");
  const Dataset dataset = Dataset::open(dir.path() / "data");
  EXPECT_EQ(match_images(dataset, dir.path() / "photos", 0).paths.size(), 6U);
  const TierImages three = match_images(dataset, dir.path() / "photos", 3);
  EXPECT_EQ(three.samples, (std::vector<std::uint64_t>{0, 2, 4}));
  fs::remove(dir.path() / "photos" / three.paths[1]);
  EXPECT_SHARD_ERROR(match_images(dataset, dir.path() / "photos", 3), ErrorCode::not_found, three.paths[1]);
}

TEST(TierData, CopiesBelowTheTierAndRemovesItAndRefusesWhatHasNoRoom) {
  const testing::TempDir dir;
  const std::atomic<bool> cancel{false};
  testing::make_photos(dir.path() / "photos", 4);
  testing::make_dataset(dir.path() / "photos", dir.path() / "data");
  TierImages images = match_images(Dataset::open(dir.path() / "data"), dir.path() / "photos", 0);
  const fs::path tier = dir.path() / "tier";
  const auto make = [&] {
    return TierData({"t", tier}, {dir.path() / "data"}, images, cancel, [](const std::string&) {});
  };
  EXPECT_SHARD_ERROR(make(), ErrorCode::not_found, "is it mounted?");
  fs::create_directory(tier);
  {
    const TierData data(TierPlace{"t", tier}, {dir.path() / "data"}, images, cancel,
                        [](const std::string&) {});
    EXPECT_FALSE(fs::is_empty(tier));
    EXPECT_EQ(Dataset::open(data.datasets()[0]).size(), 4U);
    for (const fs::path& file : data.image_files()) EXPECT_TRUE(fs::exists(file)) << file;
    for (const fs::path& file : data.shard_files(0)) EXPECT_TRUE(file.string().starts_with(tier.string()));
  }
  EXPECT_TRUE(fs::is_empty(tier));
  images.bytes = std::uint64_t{1} << 60U;
  EXPECT_SHARD_ERROR(make(), ErrorCode::resource, "give a smaller data set or --count");
  EXPECT_TRUE(fs::is_empty(tier));
}

TierTask task(const std::string& candidate, const std::function<void()>& verify, double rate) {
  TierTask task;
  task.row.tier = "t";
  task.row.candidate = candidate;
  task.row.dataset = "u8";
  task.row.bytes_per_sample = 1000;
  task.verify = verify;
  task.measure = [rate](std::string& limit_is) {
    limit_is = "this test";
    return TierSample{rate, 2 * rate, 1};
  };
  return task;
}

TEST(RunTasks, DoesNotMeasureACandidateThatIsWrongAndGoesOnAfterOneThatFails) {
  std::vector<TierTask> tasks;
  tasks.push_back(task(
      "wrong", [] { throw Error(ErrorCode::corrupt, "another sample"); }, 5));
  tasks.push_back(task(
      "right", [] {}, 7));
  tasks.push_back(task(
      "vanishing", [] {}, 7));
  unsigned calls = 0;
  tasks[2].measure = [&calls](std::string&) -> TierSample {
    if (++calls == 2) throw Error(ErrorCode::io, "the disk is gone");
    return {1, 1, 1};
  };
  const std::atomic<bool> cancel{false};
  std::vector<unsigned> repeats;
  run_tasks(tasks, 3, cancel, [&](unsigned done) { repeats.push_back(done); });
  EXPECT_EQ(repeats, (std::vector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(tasks[0].row.problem, "another sample");
  EXPECT_TRUE(tasks[0].row.samples.empty());
  EXPECT_EQ(tasks[1].row.samples.size(), 3U);
  EXPECT_EQ(rate_of(tasks[1].row), 7);
  EXPECT_EQ(limit_of(tasks[1].row), 14);
  EXPECT_EQ(tasks[2].row.problem, "the disk is gone");
  EXPECT_EQ(calls, 2U);
  const std::atomic<bool> cancelled{true};
  EXPECT_SHARD_ERROR(run_tasks(tasks, 1, cancelled, [](unsigned) {}), ErrorCode::cancelled, "removed");
}

TierRow row(const std::string& tier, TierCache cache, bool decodes, double bytes, double rate) {
  TierRow one;
  one.tier = tier;
  one.cache = cache;
  one.decodes = decodes;
  one.dataset = "u8";
  one.candidate = decodes ? "decode on the fly" : "loader, staged";
  one.bytes_per_sample = bytes;
  one.samples = {{rate, 0, 1}};
  return one;
}

TEST(TierRows, AreComparedWithTheDecodingOfTheirTierAndCache) {
  const std::vector<TierRow> rows{
      row("disk", TierCache::cold, true, 100, 50),     row("disk", TierCache::warm, true, 100, 200),
      row("disk", TierCache::cold, false, 150, 500),   row("disk", TierCache::warm, false, 150, 4000),
      row("disk", TierCache::around, false, 150, 600), row("ram", TierCache::warm, false, 150, 9000)};
  EXPECT_EQ(speed_up(rows[2], rows), 10);
  EXPECT_EQ(speed_up(rows[3], rows), 20);
  EXPECT_EQ(speed_up(rows[4], rows), 12);  // of the cold one
  EXPECT_EQ(speed_up(rows[5], rows), 0);   // its tier has none
  const std::string need = need_text(tiers_json(rows), 1000);
  EXPECT_NE(need.find("precomputed samples from: disk, warm (loader, staged of u8); ram, warm"),
            std::string::npos)
      << need;
  EXPECT_NE(need.find("decoding on the fly from: none of these"), std::string::npos) << need;
  EXPECT_NE(need.find("starves with both on: disk, cold; disk, O_DIRECT"), std::string::npos) << need;
  EXPECT_EQ(need_text(tiers_json(rows), 0), "");
  // 200 images/s of 150 bytes each as samples.
  EXPECT_EQ(break_even(200, 150, 100), 30000);
  EXPECT_EQ(break_even(200, 70, 100), 0);
  const std::string text = to_text(tiers_section({{"rows", tiers_json(rows)}}));
  EXPECT_NE(text.find("decodes 200 images/s"), std::string::npos) << text;
  EXPECT_NE(text.find("At most 20 times what decoding on the fly gives"), std::string::npos) << text;
  EXPECT_NE(to_text(tiers_section({})).find("is not known"), std::string::npos);
  const std::string csv = to_csv({{"rows", tiers_json(rows)}});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_NE(csv.find("disk,warm,false,u8,\"loader, staged\",false,150.0,4000.0"), std::string::npos) << csv;
}

TEST(ChartFile, IsSvgThatEscapesItsLabels) {
  PageChart chart{"a < b & c", "samples/s"};
  chart.bars = {{"x \"y\" <z>", 1000, 0, chart.group("one"), false},
                {"w", 1, 0, chart.group("two"), false},
                {"none", 0, 0, chart.group("two"), false}};
  EXPECT_EQ(chart.groups, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(chart.bars[2].group, 1U);
  const std::string svg = chart_file(chart);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << svg;
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find("x &quot;y&quot; &lt;z&gt;"), std::string::npos) << svg;
  EXPECT_NE(svg.find("logarithmic"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("var(--"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  chart.bars.clear();
  EXPECT_TRUE(chart_file(chart).ends_with("</svg>\n"));
  EXPECT_SHARD_ERROR(check_chart_file("chart.pdf"), ErrorCode::invalid_argument, "ending in .svg");
}

TEST(SectionText, HasTheProblemsTheTablesAndTheNotesAndNamesWhatWasLeftOut) {
  PageSection section;
  section.says = "One sentence.";
  section.problems = {"A problem."};
  PageTable table{"Caption", {"name", "of the limit"}};
  table.add({"first", percent(0.5)});
  table.leave_out({"second"}, "no memory");
  section.tables = {table};
  section.notes = {"A note."};
  EXPECT_EQ(to_text(section),
            "A problem.\nCaption\n  name    of the limit\n  first           50 %\n  second      left out\n"
            "second was left out: no memory\n\nOne sentence.\nA note.\n");
}

}  // namespace
}  // namespace shard::bench
