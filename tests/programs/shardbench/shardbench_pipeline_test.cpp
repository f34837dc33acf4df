// shardbench pipeline: what feeds the step is held against the data set first; as a user runs it.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "commands/pipeline/pipeline_bench.hpp"
#include "support/programs/bench_dataset.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

class PipelineBench : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::make_photos(photos(), 10);
    testing::make_dataset(photos(), data());
  }
  fs::path photos() const { return dir_.path() / "photos"; }
  fs::path data() const { return dir_.path() / "data"; }
  testing::TempDir dir_;
};

TEST_F(PipelineBench, ReportsEveryBatchOfEveryStepOfTheLesson) {
  const fs::path json = dir_.path() / "pipeline.json";
  const fs::path svg = dir_.path() / "pipeline.svg";
  const testing::ProgramResult run = testing::shardbench(
      "pipeline " + data().string() + " --images " + photos().string() +
      " --device host --threads 2 --batch-size 4 --batches 3 --repeat 2 --step-ms 2 --json " + json.string() +
      " --plot " + svg.string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("Load ms  Transfer ms  Train ms  Total ms"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("device busy"), std::string::npos) << run.output;
  std::ifstream in(json);
  const auto report = nlohmann::json::parse(in);
  EXPECT_EQ(report["complete"], true);
  EXPECT_GT(report["step"]["ms"], 0.2);
  EXPECT_EQ(report["step"]["wanted_ms"], 2);
  EXPECT_LT(report["step"]["ms"], 400);  // other programs run meanwhile
  EXPECT_GT(report["limit_samples_per_second"], 0);
  ASSERT_EQ(report["cases"].size(), 6U);
  EXPECT_EQ(report["cases"][0]["name"], "one thread");
  EXPECT_EQ(report["cases"][0]["speed_up"], 1);
  EXPECT_EQ(report["cases"][5]["name"], "precomputed shards");
  for (const auto& one : report["cases"]) {
    EXPECT_GT(one["samples_per_second"], 0);
    EXPECT_GT(one["device_busy"], 0);
    EXPECT_LE(one["device_busy"], 1);
    ASSERT_EQ(one["runs"].size(), 2U);
    for (const auto& batches : one["runs"]) {
      ASSERT_EQ(batches.size(), 3U);
      for (const auto& batch : batches) {
        EXPECT_GT(batch["train_ms"], 0);
        EXPECT_NEAR(batch["total_ms"].get<double>(),
                    batch["load_ms"].get<double>() + batch["transfer_ms"].get<double>() +
                        batch["train_ms"].get<double>(),
                    1e-6);
      }
    }
  }
  EXPECT_GT(fs::file_size(svg), 200U);
}

// Every feed, but the batch that is handed out says it is another one.
class Shifted final : public Feed {
 public:
  explicit Shifted(std::unique_ptr<Feed> inner) : inner_(std::move(inner)) {}
  BatchTimes next() override {
    const BatchTimes times = inner_->next();
    samples_.assign(inner_->samples().begin(), inner_->samples().end());
    std::swap(samples_.front(), samples_.back());
    return times;
  }
  const std::byte* images() const override { return inner_->images(); }
  std::span<const std::uint64_t> samples() const override { return samples_; }
  void release() override { inner_->release(); }

 private:
  std::unique_ptr<Feed> inner_;
  std::vector<std::uint64_t> samples_;
};

PipelineOptions two_batches() {
  PipelineOptions options;
  options.threads = 2;
  options.batch_size = 4;
  options.batches = 2;
  options.repeat = 1;
  return options;
}

TEST_F(PipelineBench, FeedsTheImagesOfEncodedSamplesAndOfSamplesOfAnySize) {
  for (const bool any_size : {false, true}) {
    const fs::path folder = dir_.path() / (any_size ? "any" : "encoded");
    testing::make_dataset(photos(), folder, "jpeg", any_size);
    const testing::ProgramResult run =
        testing::shardbench("pipeline " + folder.string() + " --images " + photos().string() +
                            " --device host --threads 2 --batch-size 4 --batches 1 --repeat 1 --step-ms 2");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_EQ(run.output.find("left out"), std::string::npos) << run.output;
  }
}

TEST_F(PipelineBench, DoesNotTimeAFeedThatDeliversOtherSamples) {
  const TierImages images = match_images(Dataset::open(data()), photos(), 0);
  const PipelineOptions options = two_batches();
  const auto device = make_host_device(2);
  auto kinds = feed_kinds(data(), images, device, options);
  ASSERT_EQ(kinds.size(), 6U);
  for (const std::size_t spoilt : {1U, 4U, 5U})
    kinds[spoilt].make = [make = kinds[spoilt].make] { return std::make_unique<Shifted>(make()); };
  const auto model = make_cpu_multiplier(1);
  TrainStep step(*model, 0.5);
  const std::atomic<bool> cancel{false};
  const auto cases = bench_pipeline(kinds, data(), *device, step, options, cancel, [](const auto&) {});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const bool spoilt = i == 1 || i == 4 || i == 5;
    EXPECT_EQ(cases[i].problem.find("is not delivered as the data set has it") != std::string::npos, spoilt)
        << cases[i].name << ": " << cases[i].problem;
    EXPECT_EQ(cases[i].runs.size(), spoilt ? 0U : 1U);
  }
}

TEST_F(PipelineBench, EndsAFeedWhoseImageIsGoneAndGoesOn) {
  const TierImages images = match_images(Dataset::open(data()), photos(), 0);
  fs::remove(photos() / images.paths[5]);
  const PipelineOptions options = two_batches();
  const auto device = make_host_device(2);
  const auto model = make_cpu_multiplier(1);
  TrainStep step(*model, 0.5);
  const std::atomic<bool> cancel{false};
  const auto cases = bench_pipeline(feed_kinds(data(), images, device, options), data(), *device, step,
                                    options, cancel, [](const auto&) {});
  for (std::size_t i = 0; i + 1 < cases.size(); ++i)
    EXPECT_NE(cases[i].problem.find(images.paths[5]), std::string::npos) << cases[i].name << cases[i].problem;
  EXPECT_EQ(cases.back().problem, "");
  EXPECT_EQ(cases.back().runs.size(), 1U);
}

TEST_F(PipelineBench, SaysWhereTheImagesAreNotThereAndEndsWithTwoOnBadUsage) {
  const std::string command = "pipeline " + data().string() +
                              " --device host --threads 2 --batch-size 4 --step-ms 1 "
                              "--quick --images ";
  const testing::ProgramResult absent = testing::shardbench(command + (dir_.path() / "absent").string());
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.output.find("decoding on the fly was left out"), std::string::npos) << absent.output;
  EXPECT_NE(absent.output.find("precomputed shards"), std::string::npos) << absent.output;
  const testing::ProgramResult batches = testing::shardbench(command + photos().string() + " --batches 0");
  EXPECT_EQ(batches.exit_code, 2);
  EXPECT_NE(batches.output.find("--batches: "), std::string::npos) << batches.output;
  EXPECT_EQ(testing::shardbench(command + photos().string() + " --plot a.pdf").exit_code, 2);
  EXPECT_EQ(testing::shardbench("pipeline " + photos().string() + " --images " + photos().string()).exit_code,
            2);
}

}  // namespace
}  // namespace shard::bench
