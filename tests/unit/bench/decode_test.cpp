// Batches made on many threads arrive whole and in order; a decoder that is wrong is not timed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands/decode/decode_bench.hpp"
#include "data/synth.hpp"
#include "expect_error.hpp"
#include "feeds/batch_pipeline.hpp"
#include "shard/dtype.hpp"
#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "temp_dir.hpp"

namespace shard::bench {
namespace {

class Numbers final : public RowMaker {
 public:
  explicit Numbers(std::uint64_t fails) : fails_(fails) {}
  void make(std::uint64_t index, std::span<std::byte> row) override {
    if (index == fails_) throw Error(ErrorCode::io, "row " + std::to_string(index) + " is gone");
    std::memset(row.data(), static_cast<int>(index), row.size());
  }

 private:
  std::uint64_t fails_;
};

BatchPipelineOptions numbers(std::uint64_t fails = ~std::uint64_t{0}) {
  BatchPipelineOptions options;
  options.made = {DType::u8, Layout::nhwc, 3, 4, 8};
  options.batch_size = 3;
  options.threads = 4;
  options.slots = 2;
  options.maker = [fails] { return std::make_unique<Numbers>(fails); };
  return options;
}

TEST(BatchPipeline, BringsEveryRowToItsPlaceThroughARingThatIsUsedAgain) {
  BatchPipeline pipeline(make_host_device(2), numbers());
  for (const std::uint64_t rows : {1U, 3U, 20U, 20U}) {
    std::vector<std::byte> out(rows * 96, std::byte{0xEE});
    const BatchRun run = pipeline.run(rows, out);
    EXPECT_EQ(run.rows, rows);
    EXPECT_GT(run.seconds, 0);
    for (std::uint64_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(std::to_integer<std::uint64_t>(out[i]), i / 96) << "of " << rows;
  }
}

TEST(BatchPipeline, NormalisesOnTheDevice) {
  BatchPipelineOptions options = numbers();
  options.transform.dtype = DType::f32;
  options.transform.layout = Layout::nchw;
  options.transform.normalization = Normalization{{0.5F, 0.25F, 0.0F}, {0.5F, 0.5F, 2.0F}};
  BatchPipeline pipeline(make_host_device(2), options);
  std::vector<std::byte> out(7 * 96 * 4);
  pipeline.run(7, out);
  std::vector<float> values(7 * 96);
  std::memcpy(values.data(), out.data(), out.size());
  const float byte = 6.0F / 255.0F;
  EXPECT_EQ(values[6 * 96], (byte - 0.5F) / 0.5F);
  EXPECT_EQ(values[6 * 96 + 32], (byte - 0.25F) / 0.5F);
  EXPECT_EQ(values[6 * 96 + 95], byte / 2.0F);
}

TEST(BatchPipeline, EndsWithWhatAMakerThrows) {
  for (const std::uint64_t fails : {0U, 7U, 99U}) {
    BatchPipeline pipeline(make_host_device(2), numbers(fails));
    EXPECT_SHARD_ERROR(pipeline.run(100), ErrorCode::io, "row " + std::to_string(fails) + " is gone");
  }
}

TEST(LevelDifference, CountsLevelsOfTheByteAndSeesNan) {
  const SampleSpec spec{DType::f16, Layout::nchw, 3, 1, 2};
  const Normalization normalization{{0, 0, 0}, {0.5F, 0.5F, 0.25F}};
  std::vector<std::uint16_t> values(6, f32_to_f16(0.0F));
  const auto bytes = [](const std::vector<std::uint16_t>& v) { return std::as_bytes(std::span(v)); };
  std::vector<std::uint16_t> other = values;
  EXPECT_EQ(level_difference(bytes(values), bytes(other), spec, normalization).most, 0);
  other[5] = f32_to_f16(0.5F);  // of a channel with std 0.25: 0.5 * 0.25 * 255 levels
  const LevelDifference one = level_difference(bytes(values), bytes(other), spec, normalization);
  EXPECT_NEAR(one.most, 31.875, 1e-6);
  EXPECT_NEAR(one.mean, 31.875 / 6, 1e-6);
  EXPECT_TRUE(one.within({5.4, 32}));
  EXPECT_FALSE(one.within({5.2, 32}));
  EXPECT_FALSE(one.within({5.4, 31}));
  other[0] = f32_to_f16(std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(level_difference(bytes(other), bytes(values), spec, normalization).within({1e300, 1e300}));
}

class DecodeBench : public ::testing::Test {
 protected:
  void SetUp() override {
    SynthOptions synth;
    synth.folder = dir_.path() / "images";
    synth.count = 5;
    synth.classes = 2;
    synthesize(synth, {});
    photos_ = std::make_unique<PhotoSet>(synth.folder.string(), 0, dir_.path(), cancel_);
    options_.threads = 2;
    options_.batch_size = 3;
    options_.resize = 64;
    options_.crop = 48;
    options_.repeat = 2;
    options_.seconds = 0.01;
  }
  testing::TempDir dir_;
  std::atomic<bool> cancel_{false};
  std::unique_ptr<PhotoSet> photos_;
  DecodeOptions options_;
};

// What another one makes, with one value of the last row spoilt.
class Spoilt final : public DecodeCandidate {
 public:
  Spoilt(std::unique_ptr<DecodeCandidate> inner, LevelDifference allowed)
      : inner_(std::move(inner)), allowed_(allowed) {}
  std::string name() const override { return "spoilt"; }
  std::string how() const override { return "for this test"; }
  LevelDifference allowed() const noexcept override { return allowed_; }
  std::uint64_t photos() const noexcept override { return inner_->photos(); }
  std::uint64_t photo(std::uint64_t row) const override { return inner_->photo(row); }
  BatchRun run(std::uint64_t rows, std::span<std::byte> out) override {
    const BatchRun run = inner_->run(rows, out);
    if (!out.empty()) out[out.size() - 2] ^= std::byte{1};
    return run;
  }

 private:
  std::unique_ptr<DecodeCandidate> inner_;
  LevelDifference allowed_;
};

TEST_F(DecodeBench, HoldsEachCandidateAgainstItsReferenceAndTimesIt) {
  const Candidates candidates = make_cpu_candidates(*photos_, make_host_device(2), options_);
  const auto cases = bench_decode(*photos_, options_, candidates, cancel_, [](const auto&) {});
  ASSERT_EQ(cases.size(), 4U);
  for (const DecodeCase& one : cases) {
    EXPECT_EQ(one.problem, "") << one.name;
    EXPECT_EQ(one.checked, 5U);
    EXPECT_EQ(one.difference.most, 0);
    ASSERT_EQ(one.samples.size(), 2U);
    EXPECT_GT(one.samples[0].images_per_second, 0);
    EXPECT_GT(one.samples[0].limit_images_per_second, 0);
    // The scaled DCT gives other pixels: it is another reference that it was held against.
    EXPECT_EQ(one.from_full.most > 0, one.limit == DecodeLimit::scaled) << one.name;
  }
}

TEST_F(DecodeBench, DoesNotTimeAWrongCandidate) {
  Candidates candidates = make_cpu_candidates(*photos_, make_host_device(2), options_);
  candidates[0] = std::make_unique<Spoilt>(std::move(candidates[0]), LevelDifference{0, 0});
  candidates[1] = std::make_unique<Spoilt>(std::move(candidates[1]), LevelDifference{1, 1});
  const auto cases = bench_decode(*photos_, options_, candidates, cancel_, [](const auto&) {});
  EXPECT_NE(cases[0].problem.find("wrong: "), std::string::npos) << cases[0].problem;
  EXPECT_TRUE(cases[0].samples.empty());
  EXPECT_EQ(cases[1].problem, "");  // one bit of one value is within what it states
  EXPECT_GT(cases[1].difference.most, 0);
  EXPECT_EQ(cases[1].samples.size(), 2U);
  EXPECT_EQ(cases[2].samples.size(), 2U);
}

TEST_F(DecodeBench, NamesTheFileThatIsGone) {
  const Candidates candidates = make_cpu_candidates(*photos_, make_host_device(2), options_);
  std::filesystem::remove(photos_->root() / photos_->paths()[4]);
  const auto cases = bench_decode(*photos_, options_, candidates, cancel_, [](const auto&) {});
  for (const DecodeCase& one : cases) {
    EXPECT_NE(one.problem.find(photos_->paths()[4]), std::string::npos) << one.problem;
    EXPECT_TRUE(one.samples.empty());
  }
}

}  // namespace
}  // namespace shard::bench
