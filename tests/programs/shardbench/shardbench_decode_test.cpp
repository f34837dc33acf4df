// shardbench decode, as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "data/synth.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

class DecodeProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    SynthOptions options;
    options.folder = images();
    options.count = 6;
    options.classes = 2;
    synthesize(options, {});
  }
  fs::path images() const { return dir_.path() / "images"; }
  std::string arguments(const std::string& more) const {
    return "decode " + images().string() +
           " --device host --threads 2 --resize 64 --crop-size 48 --batch-size 4 --seconds 0.01 " + more;
  }
  testing::TempDir dir_;
};

TEST_F(DecodeProgram, ReportsEverySampleBesideItsLimit) {
  std::ofstream(images() / "class_00" / "notes.jpg") << "no picture";
  const fs::path json = dir_.path() / "decode.json";
  const testing::ProgramResult run = testing::shardbench(arguments("--repeat 2 --json " + json.string()));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("6 images (1 left out: no clean JPEG)"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("the converter's bits"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("nvJPEG was left out: the device is the host"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("JpegDecoder was left out: the device is the host; with --callers"),
            std::string::npos)
      << run.output;
  const auto report = nlohmann::json::parse(testing::read_file(json));
  EXPECT_EQ(report["complete"], true);
  EXPECT_EQ(report["threads"], 2);
  EXPECT_EQ(report["crop"], 48);
  EXPECT_EQ(report["input"]["images"], 6);
  EXPECT_EQ(report["input"]["excluded"], 1);
  ASSERT_EQ(report["cases"].size(), 4U);
  for (const auto& one : report["cases"]) {
    EXPECT_EQ(one["checked"], 6);
    EXPECT_EQ(one["levels_from_reference"]["most"], 0);
    ASSERT_EQ(one["samples"].size(), 2U);
    for (const auto& sample : one["samples"]) {
      EXPECT_GT(sample["images_per_second"], 0);
      EXPECT_GT(sample["limit_images_per_second"], 0);
    }
  }
}

TEST_F(DecodeProgram, MeasuresJpegDecoderCalledBySeveralThreads) {
  const fs::path json = dir_.path() / "decode.json";
  const testing::ProgramResult run =
      testing::shardbench(arguments("--repeat 1 --callers 1,2 --call-files 2,5 --json " + json.string()));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("JpegDecoder, boxes, 2 callers of 5 files"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("6 of 6 images that were compared whole were left to the host"),
            std::string::npos)
      << run.output;
  EXPECT_EQ(run.output.find("JpegDecoder was left out"), std::string::npos) << run.output;
  const auto report = nlohmann::json::parse(testing::read_file(json));
  EXPECT_EQ(report["jpeg_decoder_absent"], "");
  ASSERT_EQ(report["cases"].size(), 12U);
  for (std::size_t i = 4; i < 12; ++i) {
    const auto& one = report["cases"][i];
    EXPECT_EQ(one["boxes"], i >= 8);
    EXPECT_EQ(one["call_files"], (i / 2) % 2 == 0 ? 2 : 5);
    EXPECT_EQ(one["callers"], 1 + i % 2);
    EXPECT_EQ(one["values_differ"], 0);
    EXPECT_GT(one["values_compared"], 0);
    EXPECT_GT(one["images_per_second"], 0);
    EXPECT_GT(one["cores"], 0);
  }
}

TEST_F(DecodeProgram, PrintsNothingButJsonWhenThatGoesToStandardOutput) {
  const testing::ProgramResult run =
      testing::shardbench(arguments("--repeat 1 --count 8 --json - 2>/dev/null"));
  ASSERT_EQ(run.exit_code, 0);
  const auto report = nlohmann::json::parse(run.output);
  EXPECT_EQ(report["benchmark"], "decode");
  EXPECT_EQ(report["input"]["images"], 8);  // some twice
}

TEST_F(DecodeProgram, EndsWithTwoOnBadUsage) {
  const auto message = [&](const std::string& more) {
    const testing::ProgramResult run = testing::shardbench("decode " + images().string() + " " + more);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    return run.output;
  };
  EXPECT_EQ(testing::shardbench("decode " + (dir_.path() / "absent").string()).exit_code, 2);
  EXPECT_NE(message("--device tpu").find("--device \"tpu\""), std::string::npos);
  EXPECT_NE(message("--device host --resize 64 --crop-size 65").find("65"), std::string::npos);
  EXPECT_NE(message("--device host --batch-size 0").find("expected 1 to 4096"), std::string::npos);
  EXPECT_NE(message("--device host --callers 2,65").find("--callers 65: expected 1 to 64"),
            std::string::npos);
  EXPECT_NE(message("--device host --call-files 0").find("--call-files 0: expected 1 to 65536"),
            std::string::npos);
}

}  // namespace
}  // namespace shard::bench
