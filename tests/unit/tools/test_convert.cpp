// The conversion engine's pure parts: which inputs, in which order, with which labels, and what a later run
// accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "convert/convert.hpp"
#include "convert/launcher.hpp"
#include "convert/progress_file.hpp"
#include "expect_error.hpp"
#include "shard/error.hpp"
#include "temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void write(const fs::path& path, const std::string& content = "x") {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> paths(const InputList& list) {
  std::vector<std::string> result;
  for (const Input& input : list.inputs) result.push_back(input.path);
  return result;
}

std::vector<std::int64_t> whole_labels(const LabelTable& table) {
  std::vector<std::int64_t> labels(table.rows.size() / 8);
  std::memcpy(labels.data(), table.rows.data(), table.rows.size());
  return labels;
}

class Convert : public ::testing::Test {
 protected:
  testing::TempDir dir_;
  fs::path images_ = dir_.path() / "images";
};

TEST_F(Convert, SortsInputsByTheBytesOfTheirPaths) {
  for (const char* name : {"b/1", "a/2", "a-b/3", "Z/4", "\xc3\xa9/5", "a/10"}) write(images_ / name);
  const InputList list = scan(images_.string(), {});
  EXPECT_THAT(paths(list), ElementsAre("Z/4", "a-b/3", "a/10", "a/2", "b/1", "\xc3\xa9/5"));
  EXPECT_THAT(list.folders, ElementsAre("Z", "a", "a-b", "b", "\xc3\xa9"));
}

TEST_F(Convert, GivesClassIdsInTheOrderOfFolderNamesAndKeepsEmptyClasses) {
  write(images_ / "cat/x/1");
  write(images_ / "ant/2");
  fs::create_directories(images_ / "bee");
  InputList list = scan(images_.string(), {});
  const LabelTable table = labels_from_folders(list);
  EXPECT_THAT(table.classes, ElementsAre("ant", "bee", "cat"));
  EXPECT_THAT(whole_labels(table), ElementsAre(0, 2));
}

TEST_F(Convert, KeepsTwoClassesWhoseNamesDifferOnlyByNormalisation) {
  write(images_ / "\xc3\xa9/1");   // U+00E9
  write(images_ / "e\xcc\x81/1");  // e, U+0301
  InputList list = scan(images_.string(), {});
  EXPECT_THAT(labels_from_folders(list).classes, ElementsAre("e\xcc\x81", "\xc3\xa9"));
}

TEST_F(Convert, LabelsAFlatFolderZero) {
  write(images_ / "2");
  write(images_ / "1");
  InputList list = scan(images_.string(), {});
  const LabelTable table = labels_from_folders(list);
  EXPECT_TRUE(table.classes.empty());
  EXPECT_THAT(whole_labels(table), ElementsAre(0, 0));
}

TEST_F(Convert, RejectsAFileBesideClassFoldersAndSaysWhy) {
  write(images_ / "cat/1");
  write(images_ / "stray");
  InputList list = scan(images_.string(), {});
  labels_from_folders(list);
  EXPECT_THAT(paths(list), ElementsAre("cat/1"));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_EQ(list.rejects[0].key, "stray");
  EXPECT_THAT(list.rejects[0].reason, HasSubstr("no class"));
}

TEST_F(Convert, EndsAtALoopOfSymbolicLinks) {
  write(images_ / "a/1");
  fs::create_directory_symlink("..", images_ / "a/up");
  fs::create_symlink("self", images_ / "self");
  const InputList list = scan(images_.string(), {});
  EXPECT_THAT(paths(list), ElementsAre("a/1"));
  ASSERT_EQ(list.rejects.size(), 2U);
  EXPECT_EQ(list.rejects[0], (Reject{"a/up", "symbolic link loop"}));
  EXPECT_EQ(list.rejects[1], (Reject{"self", "symbolic link loop"}));
}

TEST_F(Convert, FollowsLinksToFoldersAndRejectsDeadOnes) {
  write(dir_.path() / "elsewhere/1");
  fs::create_directories(images_);
  fs::create_directory_symlink(dir_.path() / "elsewhere", images_ / "linked");
  fs::create_symlink("nowhere", images_ / "dead");
  const InputList list = scan(images_.string(), {});
  EXPECT_THAT(paths(list), ElementsAre("linked/1"));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_THAT(list.rejects[0].reason, HasSubstr("No such file"));
}

TEST_F(Convert, RefusesAFolderWithoutFilesAndOneThatIsNotThere) {
  fs::create_directories(images_ / "empty");
  EXPECT_SHARD_ERROR(scan(images_.string(), {}), ErrorCode::invalid_argument, "no files found");
  EXPECT_SHARD_ERROR(scan((dir_.path() / "none").string(), {}), ErrorCode::not_found, "no such folder");
}

TEST_F(Convert, TakesClassesOfAListRelativeToTheDeepestCommonFolder) {
  write(dir_.path() / "list.txt", "x/imgs/b/2.jpg\r\n\nx/imgs/a/1.jpg\n./x/imgs/a/0.jpg\n");
  InputList list = scan("@" + (dir_.path() / "list.txt").string(), {});
  EXPECT_EQ(list.root, "x/imgs/");
  EXPECT_THAT(paths(list), ElementsAre("a/0.jpg", "a/1.jpg", "b/2.jpg"));
  EXPECT_THAT(labels_from_folders(list).classes, ElementsAre("a", "b"));
}

TEST_F(Convert, RefusesAListThatNamesAPathTwiceOrLeavesTheRoot) {
  write(dir_.path() / "twice.txt", "a/1\na/1\n");
  EXPECT_SHARD_ERROR(scan("@" + (dir_.path() / "twice.txt").string(), {}), ErrorCode::invalid_argument,
                     "listed twice");
  write(dir_.path() / "outside.txt", "a/1\nb/1\n");
  EXPECT_SHARD_ERROR(scan("@" + (dir_.path() / "outside.txt").string(), "a"), ErrorCode::invalid_argument,
                     "not below --root");
}

TEST_F(Convert, ReadsWholeNumbersNamesAndValuesFromCsv) {
  for (const char* name : {"1", "2", "3,\"x\""}) write(images_ / name);
  auto labels = [&](const std::string& csv) {
    write(dir_.path() / "l.csv", csv);
    InputList list = scan(images_.string(), {});
    return labels_from_csv(list, dir_.path() / "l.csv");
  };
  const LabelTable whole = labels("path,label\r\n2,-7\r\n1,5\r\n\"3,\"\"x\"\"\",9\r\n");
  EXPECT_THAT(whole_labels(whole), ElementsAre(5, -7, 9));
  EXPECT_TRUE(whole.classes.empty());
  const LabelTable names = labels("1,dog\n2,cat\n\"3,\"\"x\"\"\",dog");
  EXPECT_THAT(names.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(whole_labels(names), ElementsAre(1, 0, 1));
  const LabelTable values = labels("1,0.5,1\n2,-2,3e2\n\"3,\"\"x\"\"\",0,0\n");
  EXPECT_EQ(values.column.dtype, DType::f32);
  EXPECT_THAT(values.column.row_shape, ElementsAre(2U));
  float row[2];
  std::memcpy(row, values.rows.data() + 8, 8);
  EXPECT_THAT(row, ElementsAre(-2.0F, 300.0F));
}

TEST_F(Convert, NamesTheLineOfABadRowInCsv) {
  for (const char* name : {"1", "2"}) write(images_ / name);
  auto refuse = [&](const std::string& csv, const std::string& piece) {
    write(dir_.path() / "l.csv", csv);
    InputList list = scan(images_.string(), {});
    EXPECT_SHARD_ERROR(labels_from_csv(list, dir_.path() / "l.csv"), ErrorCode::invalid_argument, piece);
  };
  refuse("1,0\nnone,1\n", "l.csv:2: no such image: 'none'");
  refuse("1,0\n1,1\n", "l.csv:2: '1' is labelled twice");
  refuse("1,0\n2\n", "l.csv:2: 1 fields");
  refuse("1,0.5,1\n2,nan,1\n", "'nan' is not a finite number");
  refuse("1,\"0\n", "does not end");
  refuse("", "has no rows");
}

TEST_F(Convert, RejectsImagesThatTheTableDoesNotName) {
  for (const char* name : {"1", "2"}) write(images_ / name);
  write(dir_.path() / "l.csv", "2,1\n");
  InputList list = scan(images_.string(), {});
  const LabelTable table = labels_from_csv(list, dir_.path() / "l.csv");
  EXPECT_THAT(paths(list), ElementsAre("2"));
  EXPECT_THAT(whole_labels(table), ElementsAre(1));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_EQ(list.rejects[0], (Reject{"1", "has no label in l.csv"}));
}

TEST_F(Convert, CutsThePlanIntoShardsThatCoverEachInputOnce) {
  for (int i = 0; i < 7; ++i) write(images_ / std::to_string(i));
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  options.samples_per_shard = 3;
  const Plan plan = make_plan(options);
  ASSERT_EQ(plan.shards(), 3U);
  EXPECT_EQ(plan.shard_inputs(0) + plan.shard_inputs(1) + plan.shard_inputs(2), 7U);
  EXPECT_EQ(plan.shard_inputs(2), 1U);
}

TEST_F(Convert, RefusesAnOutThatWouldBecomeInput) {
  write(images_ / "a/1");
  Options options;
  options.images = images_.string();
  for (const fs::path& out : {images_, images_ / "a/out", images_ / ".." / "images" / "out"}) {
    options.out = out;
    EXPECT_SHARD_ERROR(make_plan(options), ErrorCode::invalid_argument, "lies inside IMAGES");
  }
  options.images = "/";
  options.out = dir_.path() / "out";
  EXPECT_SHARD_ERROR(make_plan(options), ErrorCode::invalid_argument, "lies inside IMAGES");
}

TEST_F(Convert, DigestsKeysAndLabelsOfTheSource) {
  write(images_ / "a/1");
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  const std::string before = make_plan(options).source_digest;
  EXPECT_EQ(make_plan(options).source_digest, before);
  fs::create_directories(images_ / "0");  // an empty class moves the label of a from 0 to 1
  EXPECT_NE(make_plan(options).source_digest, before);
}

TEST(ConvertOptions, RefuseWhatCannotBe) {
  Options options;
  options.images = "x";
  options.out = "y";
  options.rank = 2;
  options.world = 2;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "--rank 2");
  options.world = 3;
  options.overwrite = true;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "--overwrite with several processes");
  options.overwrite = false;
  options.shard_size_bytes = 1000;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "--shard-size 1000");
}

TEST(ConvertOptions, ComeBackFromTheRecordedPipeline) {
  Options options;
  options.preprocess.squash = image::Size{300, 200};
  options.preprocess.crop = image::Size{100, 90};
  options.preprocess.filter = image::Filter::lanczos;
  options.preprocess.dtype = DType::u8;
  options.preprocess.layout = Layout::nhwc;
  options.fast_decode = true;
  DatasetInfo info;
  info.spec = options.preprocess.sample_spec();
  info.normalization = options.preprocess.normalization;
  info.pipeline = pipeline_of(options);
  const image::PreprocessOptions back = preprocess_options_from(info);
  EXPECT_EQ(back.squash, options.preprocess.squash);
  EXPECT_EQ(back.crop, options.preprocess.crop);
  EXPECT_EQ(back.filter, options.preprocess.filter);
  EXPECT_EQ(back.sample_spec(), info.spec);
  EXPECT_EQ(decode_options_from(info).fast_min_short_side, 300U);
  info.pipeline["filter"] = "hamming";
  EXPECT_SHARD_ERROR(preprocess_options_from(info), ErrorCode::unsupported, "filter 'hamming'");
}

TEST(ConvertFingerprint, ChangesWithEveryOptionThatShapesTheBytes) {
  const ColumnSpec labels{"labels", DType::i64, {}};
  std::set<std::string> seen;
  auto add = [&](const std::function<void(Options&)>& change) {
    Options options;
    change(options);
    seen.insert(fingerprint_of(options, labels));
  };
  add([](Options&) {});
  add([](Options& o) { o.preprocess.filter = image::Filter::box; });
  add([](Options& o) { o.preprocess.resize_short = 300; });
  add([](Options& o) { o.preprocess.crop = image::Size{200, 200}; });
  add([](Options& o) { o.preprocess.dtype = DType::bf16; });
  add([](Options& o) { o.preprocess.layout = Layout::nhwc; });
  add([](Options& o) { o.preprocess.normalization.mean[1] = 0.25F; });
  add([](Options& o) { o.preprocess.normalization.std[2] = 0.25F; });
  add([](Options& o) { o.codec = {Codec::Kind::zstd, 3}; });
  add([](Options& o) { o.codec = {Codec::Kind::zstd, 4}; });
  add([](Options& o) { o.samples_per_shard = 10; });
  add([](Options& o) { o.fast_decode = true; });
  EXPECT_EQ(seen.size(), 12U);
}

TEST(PlanRecord, NamesWhatDiffers) {
  PlanRecord there{"f1", "s1", 10, 5, {{"filter", "bilinear"}, {"crop", "center 224x224"}}, false};
  EXPECT_NO_THROW(require_same_plan(parse_plan(serialize_plan(there)), there, "out"));
  PlanRecord asked = there;
  asked.fingerprint = "f2";
  asked.options["filter"] = "box";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "filter: 'bilinear' there, 'box' asked for");
  asked = there;
  asked.inputs = 11;
  asked.source_digest = "s2";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "inputs: '10' there, '11' asked for");
  asked = there;
  asked.source_digest = "s2";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "not the same as then");
}

TEST(PlanRecord, RefusesAFileThatIsNotOne) {
  EXPECT_SHARD_ERROR(parse_plan("{"), ErrorCode::corrupt, "conversion.json");
  EXPECT_SHARD_ERROR(parse_plan(R"({"version": 99})"), ErrorCode::unsupported, "another version");
}

TEST(ShardReceipt, ComesBackAsItWas) {
  Receipt receipt;
  receipt.shard = {"shard-00003.safetensors", 7, 4096, 0xfedcba9876543210U};
  receipt.rejects = {{"a/\"b\".jpg", "is empty, or \"so\""}};
  const Receipt back = parse_receipt(serialize_receipt(receipt));
  EXPECT_EQ(back.shard, receipt.shard);
  EXPECT_EQ(back.rejects, receipt.rejects);
}

class Launcher : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static constexpr std::array<const char*, 8> kNames{
      "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
      "SLURM_PROCID",         "SLURM_NTASKS",         "RANK",     "WORLD_SIZE"};
};

TEST_F(Launcher, ReadsEachLaunchersVariables) {
  EXPECT_FALSE(placement_from_environment());
  for (std::size_t i = 0; i < kNames.size(); i += 2) {
    ::setenv(kNames[i], "2", 1);
    ::setenv(kNames[i + 1], "5", 1);
    const auto placement = placement_from_environment();
    ASSERT_TRUE(placement) << kNames[i];
    EXPECT_EQ(placement->rank, 2U);
    EXPECT_EQ(placement->world, 5U);
    SetUp();
  }
}

TEST_F(Launcher, RefusesHalfAPairAndNonsense) {
  ::setenv("RANK", "1", 1);
  EXPECT_SHARD_ERROR(placement_from_environment(), ErrorCode::invalid_argument,
                     "RANK is set without WORLD_SIZE");
  ::setenv("WORLD_SIZE", "1", 1);
  EXPECT_SHARD_ERROR(placement_from_environment(), ErrorCode::invalid_argument, "must be less than");
  ::setenv("WORLD_SIZE", "two", 1);
  EXPECT_SHARD_ERROR(placement_from_environment(), ErrorCode::invalid_argument, "WORLD_SIZE='two'");
}

}  // namespace
}  // namespace shard::convert
