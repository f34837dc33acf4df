// A decoder that is wrong is not timed.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands/decode/decode_bench.hpp"
#include "commands/decode/jpeg_files.hpp"
#include "data/synth.hpp"
#include "feeds/batch_pipeline.hpp"
#include "shard/dtype.hpp"
#include "shard/loader/device.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

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

// JpegDecoder's rows, of which the first does not give the host's values.
class Deviating final : public DecodeCandidate {
 public:
  explicit Deviating(std::unique_ptr<DecodeCandidate> inner) : inner_(std::move(inner)) {}
  std::string name() const override { return "deviating"; }
  std::string how() const override { return "for this test"; }
  std::uint64_t photos() const noexcept override { return inner_->photos(); }
  std::uint64_t photo(std::uint64_t row) const override { return inner_->photo(row); }
  std::optional<ValueCheck> check_values(const std::atomic<bool>& cancel) override {
    auto check = inner_->check_values(cancel);
    if (check) check->differ += 1;
    return check;
  }
  BatchRun run(std::uint64_t rows, std::span<std::byte> out) override { return inner_->run(rows, out); }

 private:
  std::unique_ptr<DecodeCandidate> inner_;
};

TEST_F(DecodeBench, CountsTheValuesOfJpegDecoderThatDifferFromTheHosts) {
  options_.callers = {1, 2};
  options_.call_files = {3, 7};
  std::string absent;
  Candidates candidates = make_jpeg_candidates(*photos_, make_host_device(2), options_, absent);
  EXPECT_EQ(absent, "");
  ASSERT_EQ(candidates.size(), 8U);
  candidates[1] = std::make_unique<Deviating>(std::move(candidates[1]));
  const auto cases = bench_decode(*photos_, options_, candidates, cancel_, [](const auto&) {});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const DecodeCase& one = cases[i];
    ASSERT_TRUE(one.values) << one.name;
    EXPECT_EQ(one.checked, 5U);
    EXPECT_EQ(one.values->on_host, 5U);
    if (i == 1) {
      EXPECT_NE(one.problem.find("wrong: 1 of "), std::string::npos) << one.problem;
      EXPECT_TRUE(one.samples.empty());
      continue;
    }
    EXPECT_EQ(one.problem, "") << one.name;
    EXPECT_EQ(one.values->differ, 0U) << one.name;
    // Whole images, and of each caller's first call the delivered ones.
    EXPECT_EQ(one.values->compared,
              photos_->pixels() * 3 + one.calls->callers * one.calls->files * 3 * 48 * 48);
    ASSERT_EQ(one.samples.size(), 2U);
    EXPECT_GT(one.samples[0].images_per_second, 0);
    EXPECT_GT(one.samples[0].limit_images_per_second, 0);
  }
}

TEST_F(DecodeBench, MeasuresTheHostsJpegDecoderOnlyWhereCallersAreAskedFor) {
  std::string absent;
  EXPECT_TRUE(make_jpeg_candidates(*photos_, make_host_device(1), options_, absent).empty());
  EXPECT_NE(absent.find("--callers"), std::string::npos) << absent;
}

TEST_F(DecodeBench, ComparesBoxesWithOtherValuesThanWholeImages) {
  JpegFiles files(*photos_, make_host_device(2), options_);
  const auto whole = files.reference(JpegCut::whole, 5);
  const auto boxes = files.reference(JpegCut::box, 5);
  ASSERT_EQ(whole.size(), 5U * 3 * 48 * 48 * 2);
  EXPECT_GT(differing_values(whole, boxes, 2), whole.size() / 4);  // of whole.size() / 2
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(files.input(i, JpegCut::box).box) << i;
  EXPECT_FALSE(files.input(0, JpegCut::whole).box);
}

TEST(DifferingValues, CountsValuesAndWhatIsMissing) {
  std::vector<std::uint16_t> one{1, 2, 3, 4};
  std::vector<std::uint16_t> other = one;
  const auto count = [&] {
    return differing_values(std::as_bytes(std::span(one)), std::as_bytes(std::span(other)), 2);
  };
  EXPECT_EQ(count(), 0U);
  other[0] = 0x0201;  // both bytes
  other[3] = 5;
  EXPECT_EQ(count(), 2U);
  other.resize(2);
  EXPECT_EQ(count(), 3U);
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
