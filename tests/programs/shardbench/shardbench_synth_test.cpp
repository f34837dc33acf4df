// shardbench synth: the same bytes whatever the threads, pictures that every decoder takes, sizes as stated,
// and no harm to a folder that holds anything else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "data/jpeg_encoder.hpp"
#include "data/photo.hpp"
#include "data/synth.hpp"
#include "limits/pure_decode.hpp"
#include "shard/image/decode.hpp"
#include "support/expect_error.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

SynthOptions options_of(const fs::path& folder, std::uint64_t count) {
  SynthOptions options;
  options.folder = folder;
  options.count = count;
  options.seed = 7;
  options.jobs = 2;
  return options;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), folder).string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

TEST(Synth, MakesTheSameBytesWithAnyNumberOfThreadsAndAgain) {
  const testing::TempDir dir;
  SynthOptions one = options_of(dir.path() / "one", 12);
  one.jobs = 1;
  SynthOptions four = options_of(dir.path() / "four", 12);
  four.jobs = 4;
  synthesize(one, {});
  synthesize(four, {});
  const auto first = contents(one.folder);
  EXPECT_EQ(first.size(), 12U);
  EXPECT_TRUE(first == contents(four.folder));
  synthesize(one, {});
  EXPECT_TRUE(first == contents(one.folder));
}

TEST(Synth, MakesTheSamePictureWhateverTheCount) {
  const testing::TempDir dir;
  synthesize(options_of(dir.path() / "few", 3), {});
  synthesize(options_of(dir.path() / "more", 12), {});
  const auto more = contents(dir.path() / "more");
  for (const auto& [name, bytes] : contents(dir.path() / "few")) EXPECT_TRUE(more.at(name) == bytes) << name;
}

TEST(Synth, MakesOtherPicturesOfAnotherSeed) {
  const testing::TempDir dir;
  SynthOptions other = options_of(dir.path() / "other", 2);
  other.seed = 8;
  synthesize(options_of(dir.path() / "one", 2), {});
  synthesize(other, {});
  EXPECT_FALSE(contents(dir.path() / "one") == contents(other.folder));
}

TEST(Synth, SpreadsPicturesEvenlyOverClassFolders) {
  const testing::TempDir dir;
  SynthOptions options = options_of(dir.path() / "set", 9);
  options.classes = 4;
  const SynthSummary summary = synthesize(options, {});
  EXPECT_EQ(summary.images, 9U);
  std::map<std::string, int> classes;
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : contents(options.folder)) {
    ++classes[fs::path(name).parent_path().string()];
    bytes += content.size();
  }
  EXPECT_EQ(classes,
            (std::map<std::string, int>{{"class_00", 3}, {"class_01", 2}, {"class_02", 2}, {"class_03", 2}}));
  EXPECT_EQ(summary.bytes, bytes);
  EXPECT_TRUE(fs::exists(options.folder / "class_03" / "img_000007.jpg"));
}

TEST(Synth, MakesJpegsThatDecodeWithoutAWarningAtTheSizePlanned) {
  image::Decoder decoder;
  PureDecoder pure;
  for (std::uint64_t index = 0; index < 16; ++index) {
    const PhotoPlan plan = plan_photo(3, index, 10);
    const auto file = encode_photo(plan, render_photo(plan), "a comment");
    EXPECT_EQ(pure.decode(file), std::uint64_t{plan.width} * plan.height) << index << ": " << pure.problem();
    const image::RgbView view = decoder.decode(file, {});
    EXPECT_EQ(view.width, plan.width);
    EXPECT_EQ(view.height, plan.height);
  }
}

TEST(Synth, EncodesEachSamplingAndProgressivePictures) {
  PureDecoder pure;
  for (const Sampling sampling : {Sampling::s420, Sampling::s422, Sampling::s444, Sampling::gray}) {
    PhotoPlan plan = plan_photo(3, 0, 10);
    plan.width = 61;
    plan.height = 47;
    plan.sampling = sampling;
    plan.progressive = sampling == Sampling::s422;
    EXPECT_EQ(pure.decode(encode_photo(plan, render_photo(plan), "x")), 61U * 47U) << pure.problem();
  }
}

TEST(Synth, HasTheSizesAndBitsPerPixelItStates) {
  double pixels = 0;
  std::uint64_t common = 0, portrait = 0, s420 = 0;
  constexpr std::uint64_t kPlans = 20'000;
  for (std::uint64_t index = 0; index < kPlans; ++index) {
    const PhotoPlan plan = plan_photo(1, index, 10);
    ASSERT_GE(std::min(plan.width, plan.height), 140U);
    ASSERT_LE(std::max(plan.width, plan.height), 1600U);
    pixels += double{1} * plan.width * plan.height;
    common += plan.width == 500 && plan.height == 375 ? 1U : 0U;
    portrait += plan.height > plan.width ? 1U : 0U;
    s420 += plan.sampling == Sampling::s420 ? 1U : 0U;
  }
  EXPECT_NEAR(pixels / kPlans, 218'000, 6'000);
  EXPECT_NEAR(static_cast<double>(common) / kPlans, 0.30, 0.02);
  EXPECT_NEAR(static_cast<double>(portrait) / kPlans, 0.25, 0.04);
  EXPECT_NEAR(static_cast<double>(s420) / kPlans, 0.68, 0.02);

  const testing::TempDir dir;
  const SynthSummary summary = synthesize(options_of(dir.path() / "set", 48), {});
  const double bits = 8.0 * static_cast<double>(summary.bytes) / static_cast<double>(summary.pixels);
  EXPECT_GT(bits, 3.4);
  EXPECT_LT(bits, 4.4);
}

TEST(Synth, RefusesAFolderWithAnythingElseInItAndLeavesItAlone) {
  const testing::TempDir dir;
  std::ofstream(dir.path() / "thesis.txt") << "years of work";
  const auto before = contents(dir.path());
  EXPECT_SHARD_ERROR(synthesize(options_of(dir.path(), 2), {}), ErrorCode::invalid_argument, "thesis.txt");
  EXPECT_TRUE(before == contents(dir.path()));
}

TEST(Synth, RefusesAForeignPictureAmongItsOwn) {
  const testing::TempDir dir;
  synthesize(options_of(dir.path() / "set", 2), {});
  std::ofstream(dir.path() / "set" / "class_00" / "img_000001.jpg") << "someone's";
  EXPECT_SHARD_ERROR(synthesize(options_of(dir.path() / "set", 2), {}), ErrorCode::invalid_argument,
                     "not made by this version");
}

TEST(Synth, RefusesTheFolderOfAnotherSeedOrALargerCount) {
  const testing::TempDir dir;
  synthesize(options_of(dir.path() / "set", 3), {});
  SynthOptions other = options_of(dir.path() / "set", 3);
  other.seed = 8;
  EXPECT_SHARD_ERROR(synthesize(other, {}), ErrorCode::invalid_argument, "another --seed");
  EXPECT_SHARD_ERROR(synthesize(options_of(dir.path() / "set", 2), {}), ErrorCode::invalid_argument,
                     "beyond --count 2");
}

TEST(Synth, RemovesWhatAKilledRunLeftAndGoesOn) {
  const testing::TempDir dir;
  synthesize(options_of(dir.path() / "set", 2), {});
  const fs::path left = dir.path() / "set" / "class_00" / "img_000000.jpg.tmp";
  std::ofstream(left) << "half";
  synthesize(options_of(dir.path() / "set", 2), {});
  EXPECT_FALSE(fs::exists(left));
}

TEST(Synth, StopsWhenAskedTo) {
  const testing::TempDir dir;
  const SynthProgress two = [](const SynthSummary& now) { return now.images < 2; };
  EXPECT_SHARD_ERROR(synthesize(options_of(dir.path() / "set", 50), two), ErrorCode::cancelled, "stopped");
  EXPECT_LT(contents(dir.path()).size(), 10U);
}

TEST(SynthProgram, SaysWhatItMadeAndEndsWithTwoOnBadUsage) {
  const testing::TempDir dir;
  const testing::ProgramResult made =
      testing::shardbench("synth " + (dir.path() / "set").string() + " --count 3");
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_NE(made.output.find("3 pictures in 3 classes"), std::string::npos) << made.output;
  EXPECT_EQ(testing::shardbench("synth " + (dir.path() / "set").string() + " --count 0").exit_code, 2);
  EXPECT_EQ(testing::shardbench("synth " + (dir.path() / "set").string() + " --count 3 --seed 1").exit_code,
            2);
  EXPECT_EQ(testing::shardbench("").exit_code, 2);
}

}  // namespace
}  // namespace shard::bench
