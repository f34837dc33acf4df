// shardbench report, as a user runs it: what it runs, and a page that a browser can read and nothing breaks.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "commands/report/book.hpp"
#include "report/section.hpp"
#include "report/svg.hpp"
#include "support/programs/bench_dataset.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

// The first element that is not closed, or closed without having been opened; empty: there is none.
std::string unbalanced(const std::string& html) {
  const std::set<std::string> alone{"meta", "link", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    std::string tag = html.substr(at + 1, end - at - 1);
    const bool empty = tag.ends_with('/');
    tag = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return tag;
      open.pop_back();
    } else if (!empty && !alone.contains(tag)) {
      open.push_back(tag);
    }
  }
  return open.empty() ? "" : open.back();
}

class ReportProgram : public ::testing::Test {
 protected:
  fs::path photos() const { return dir_.path() / "photos"; }
  fs::path out() const { return dir_.path() / "report"; }
  std::string page() const { return testing::read_file(out() / "index.html"); }
  testing::ProgramResult run(const std::string& more) const {
    return testing::shardbench("report " + out().string() + " " + more);
  }
  // Of the page: from the section's heading to its end.
  std::string section(const std::string& part) const {
    const std::string all = page();
    const std::size_t begin = all.find("<section id=\"" + part + "\"");
    return begin == std::string::npos ? "" : all.substr(begin, all.find("</section>", begin) - begin);
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(out())) names.insert(entry.path().filename().string());
    return names;
  }
  testing::TempDir dir_;
};

TEST_F(ReportProgram, RunsTheSetAndSaysWhatIsLeftOutOnAPageThatNeedsNothingElse) {
  testing::make_photos(photos(), 6);
  const testing::ProgramResult result =
      run("--images " + photos().string() + " --tier own=" + dir_.path().string() +
          " --tier gone=" + (dir_.path() / "absent").string() +
          " --emulate bw=900MB/s,lat=0ms --device host --quick --seconds 0.01");
  ASSERT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("tiers: a part was left out"), std::string::npos) << result.output;
  EXPECT_NE(section("tiers").find("<li>tier gone was left out: "), std::string::npos) << section("tiers");
  std::set<std::string> expected{"index.html"};
  for (const auto& [part, operands, section_of_it] : kReportParts) {
    expected.insert(part + std::string(".json"));
    EXPECT_NE(section(part).find("<table>"), std::string::npos) << part << "\n" << section(part);
    EXPECT_EQ(section(part).find("class=\"problems\"") != std::string::npos, part == std::string("tiers"))
        << section(part);
    EXPECT_EQ(section(part).find("<svg") != std::string::npos, part != std::string("device")) << part;
    EXPECT_NE(section(part).find("<code>shardbench " + std::string(part)), std::string::npos) << part;
  }
  EXPECT_EQ(files(), expected);
  const std::string html = page();
  EXPECT_EQ(unbalanced(html), "");
  for (const char* foreign : {"http", "src=", "@import", "url(", "<script"})
    EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
  EXPECT_NE(html.find("<html lang=\"en\">"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(section("tiers").find("<span class=\"emulated\">emulated</span>"), std::string::npos);
  EXPECT_NE(section("tiers").find("(emulated)</text>"), std::string::npos);
  EXPECT_NE(section("tiers").find("u8 packed"), std::string::npos);

  for (const char* part : {"tiers", "device"}) {  // as if that tier had not been asked for
    const fs::path file = out() / (part + std::string(".json"));
    nlohmann::json json = nlohmann::json::parse(testing::read_file(file));
    json.erase("problems");
    json.erase("filesystems");
    std::ofstream(file) << json;
  }
  const testing::ProgramResult again = run("--from-json");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(page().find("class=\"problems\""), std::string::npos);
}

TEST_F(ReportProgram, MeasuresADataSetOfJpegFilesOfAnySize) {
  testing::make_photos(photos(), 6);
  const fs::path data = dir_.path() / "data";
  testing::make_dataset(photos(), data, "jpeg", true);
  const testing::ProgramResult result =
      run("--images " + photos().string() + " --dataset " + data.string() +
          " --tier own=" + dir_.path().string() + " --device host --quick --seconds 0.01");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(section("load").find("of the limit, by stored bytes"), std::string::npos) << section("load");
  EXPECT_NE(section("tiers").find("short side to 256, centre 224x224"), std::string::npos)
      << section("tiers");
  EXPECT_NE(section("decode").find("JpegDecoder was left out: the device is the host"), std::string::npos)
      << section("decode");
}

TEST_F(ReportProgram, MakesThePageOfJsonThatSomebodyElseWrote) {
  fs::create_directory(out());
  const std::string hostile = "<script>alert(\"1\")</script>&";
  const std::string escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;";
  nlohmann::json pipeline{{"benchmark", "pipeline"},
                          {"version", hostile},
                          {"command", hostile},
                          {"complete", true},
                          {"device", hostile},
                          {"machine", {{"cpu", hostile}, {"cores", 2}}},
                          {"limit_samples_per_second", 100.0}};
  pipeline["cases"] = {{{"name", hostile}, {"how", hostile}, {"samples_per_second", 10.0}},
                       {{"name", "other"}, {"problem", hostile}}};
  std::ofstream(out() / "pipeline.json") << pipeline;
  std::ofstream(out() / "tiers.json") << R"({"rows": [7, null, {"tier": 3}], "tiers": "x", "problems": 4})";
  std::ofstream(out() / "write.json") << "{\"cases\": [";
  std::ofstream(out() / "notes.txt") << "mine";
  const testing::ProgramResult result = run("--from-json");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  const std::string html = page();
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(unbalanced(html), "");
  // The bar's label and its description, the row's heading, how and the command.
  std::size_t count = 0;
  for (std::size_t at = html.find(escaped); at != std::string::npos; at = html.find(escaped, at + 1)) ++count;
  EXPECT_GE(count, 8U);
  EXPECT_NE(section("pipeline").find("left out: " + escaped), std::string::npos) << section("pipeline");
  EXPECT_NE(section("write").find("write.json&quot; cannot be read"), std::string::npos) << section("write");
  EXPECT_NE(section("load").find("shardbench load DATASET --json"), std::string::npos) << section("load");
  EXPECT_NE(section("tiers").find("not measured"), std::string::npos) << section("tiers");
}

TEST_F(ReportProgram, LeavesTheFilesOfOthersAlone) {
  fs::create_directory(out());
  std::ofstream(out() / "notes.txt") << "mine";
  const testing::ProgramResult notes = run("--quick");
  EXPECT_EQ(notes.exit_code, 2);
  EXPECT_NE(notes.output.find("it holds \"notes.txt\", which no report made"), std::string::npos)
      << notes.output;
  std::ofstream(out() / "index.html") << "<p>mine";
  EXPECT_EQ(run("--from-json").exit_code, 2);
  EXPECT_EQ(page(), "<p>mine");
  fs::remove_all(out());
  EXPECT_EQ(run("--from-json").exit_code, 2);
  EXPECT_FALSE(fs::exists(out()));
}

// Those that need images are left out, those that read the data set fail, and upload is under way.
TEST_F(ReportProgram, SaysWhatFailedAndWritesThePageOfWhatIsThereWhenItIsInterrupted) {
  const std::string folder = out().string();
  const std::string absent = (dir_.path() / "absent").string();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::execl(SHARDBENCH_PROGRAM, SHARDBENCH_PROGRAM, "report", folder.c_str(), "--dataset", absent.c_str(),
            "--device", "host", "--seconds", "300", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const std::string failed = "failed with exit code 2: shardbench: ";
  while (section("load").find(failed) == std::string::npos && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_NE(section("device").find("<table>"), std::string::npos);
  EXPECT_NE(section("load").find(failed), std::string::npos) << section("load");
  EXPECT_NE(section("load").find(absent), std::string::npos) << section("load");
  for (const char* part : {"convert", "decode", "tiers", "pipeline"})
    EXPECT_NE(section(part).find("left out: no images were given: add --images"), std::string::npos)
        << section(part);
  for (const char* part : {"upload", "memory", "write", "matmul"})
    EXPECT_NE(section(part).find("not measured to its end: interrupted"), std::string::npos) << section(part);
  if (fs::exists(out() / "upload.json")) {  // the signal has reached the child
    EXPECT_NE(testing::read_file(out() / "upload.json").find("\"complete\": false"), std::string::npos);
  }
  for (const std::string& name : files()) EXPECT_FALSE(name.starts_with("shardbench-")) << name;
  EXPECT_EQ(unbalanced(page()), "");
}

TEST(ReportChart, SaysWhereItsAxisIsLogarithmicAndMarksTheLimit) {
  PageChart chart{"a < b", "samples/s", {}, {{"slow", 10, 0, 0, false}, {"fast", 900, 1000, 0, true}}};
  EXPECT_EQ(chart_figure(chart, "x").find("logarithmic"), std::string::npos);
  EXPECT_NE(chart_figure(chart, "x").find("a &lt; b"), std::string::npos);
  EXPECT_NE(chart_figure(chart, "x").find("class=\"limit\""), std::string::npos);
  chart.bars[0].value = 1;
  EXPECT_NE(chart_figure(chart, "x").find("logarithmic"), std::string::npos);
  EXPECT_EQ(people(1234567.0), "1,234,567");
  EXPECT_EQ(people(0.012345), "0.0123");
  EXPECT_EQ(people(8), "8");
  EXPECT_EQ(people(std::nan("")), "-");
}

}  // namespace
}  // namespace shard::bench
