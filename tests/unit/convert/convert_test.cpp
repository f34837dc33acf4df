// The conversion engine's pure parts: which inputs, in which order, with which labels, and what a later run
// accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "convert/plan/plan.hpp"
#include "convert/publish/folder_lock.hpp"
#include "convert/publish/input_table.hpp"
#include "convert/publish/journal.hpp"
#include "expect_error.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/rank.hpp"
#include "shard/convert/recorded.hpp"
#include "shard/convert/text_options.hpp"
#include "shard/error.hpp"
#include "temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The first bytes of a PNG: an image, whatever its name.
const std::string kImage = "\x89PNG\r\n\x1a\n";

void write(const fs::path& path, const std::string& content = kImage) {
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
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("Z/4", "a-b/3", "a/10", "a/2", "b/1", "\xc3\xa9/5"));
  EXPECT_THAT(list.folders, ElementsAre("Z", "a", "a-b", "b", "\xc3\xa9"));
}

TEST_F(Convert, GivesClassIdsInTheOrderOfFolderNamesAndNoneToEmptyFolders) {
  write(images_ / "cat/1");
  write(images_ / "ant/1");
  fs::create_directories(images_ / "bee/deep");
  InputList list = scan({.images = images_.string()});
  const LabelTable table = labels_from_folders(list);
  EXPECT_THAT(table.classes, ElementsAre("ant", "cat"));
  EXPECT_THAT(whole_labels(table), ElementsAre(0, 1));
  EXPECT_THAT(list.empty_folders, ElementsAre("bee"));
}

TEST_F(Convert, PassesOverHiddenNamesLitterAndWhatIsNoImage) {
  write(images_ / "a/1.jpg", "no picture, but a name that promises one");
  write(images_ / "a/image");
  for (const char* name :
       {"a/.b.jpg", "a/.git/c.jpg", "__MACOSX/a.jpg", "a/THUMBS.DB", "a/text.txt", "README"})
    write(images_ / name, "GIF, PNG or BM: a text");
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("a/1.jpg", "a/image"));
  EXPECT_THAT(list.folders, ElementsAre("a"));
  EXPECT_TRUE(list.rejects.empty());
  EXPECT_THAT(list.skipped,
              ElementsAre(Skip{"README", SkipReason::no_image}, Skip{"__MACOSX", SkipReason::litter},
                          Skip{"a/.b.jpg", SkipReason::hidden}, Skip{"a/.git", SkipReason::hidden},
                          Skip{"a/THUMBS.DB", SkipReason::litter}, Skip{"a/text.txt", SkipReason::no_image}));
}

TEST(InputName, KnowsImagesByContentAlsoThoseThatAreNotDecoded) {
  const auto is_image = [](std::string_view text) {
    return has_image_content(std::as_bytes(std::span(text.data(), text.size())));
  };
  using namespace std::literals;
  for (const std::string_view text :
       {"\xFF\xD8\xFF\xE0"sv, "\x89PNG\r\n\x1a\n"sv, "RIFF\0\0\0\0WEBP"sv, "GIF89a"sv, "II*\0"sv, "MM\0*"sv,
        "BM\x5A\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"sv,
        "\0\0\0\x18"
        "ftypheic"sv,
        "\0\0\0\x1c"
        "ftypavif"sv})
    EXPECT_TRUE(is_image(text)) << text;
  for (const std::string_view text :
       {""sv, "BM"sv, "BMW,1,2,3\n"sv, "path,label\n"sv, "PK\3\4"sv, "%PDF-1.4"sv, "RIFF\0\0\0\0WAVE"sv,
        "\0\0\0\x18"
        "ftypmp42"sv})
    EXPECT_FALSE(is_image(text)) << text;
  for (const char* name : {"a.jpg", "a.JPEG", "a.b.Png", "x.webp", "x.HEIC", "x.tif"})
    EXPECT_TRUE(has_image_name(name));
  for (const char* name : {"jpg", "a.jpg.txt", "a.", "", "a.jpg~", "a.jpegs"})
    EXPECT_FALSE(has_image_name(name));
}

TEST_F(Convert, KeepsTwoClassesWhoseNamesDifferOnlyByNormalisation) {
  write(images_ / "\xc3\xa9/1");   // U+00E9
  write(images_ / "e\xcc\x81/1");  // e, U+0301
  InputList list = scan({.images = images_.string()});
  EXPECT_THAT(labels_from_folders(list).classes, ElementsAre("e\xcc\x81", "\xc3\xa9"));
}

TEST_F(Convert, LabelsAFlatFolderZero) {
  write(images_ / "2");
  write(images_ / "1");
  InputList list = scan({.images = images_.string()});
  const LabelTable table = labels_from_folders(list);
  EXPECT_TRUE(table.classes.empty());
  EXPECT_THAT(whole_labels(table), ElementsAre(0, 0));
}

TEST_F(Convert, RejectsAFileBesideClassFoldersAndSaysWhy) {
  write(images_ / "cat/1");
  write(images_ / "stray");
  InputList list = scan({.images = images_.string()});
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
  const InputList list = scan({.images = images_.string()});
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
  const InputList list = scan({.images = images_.string()});
  EXPECT_THAT(paths(list), ElementsAre("linked/1"));
  ASSERT_EQ(list.rejects.size(), 1U);
  EXPECT_THAT(list.rejects[0].reason, HasSubstr("No such file"));
}

TEST_F(Convert, RefusesAFolderWithoutFilesAndOneThatIsNotThere) {
  fs::create_directories(images_ / "empty");
  EXPECT_SHARD_ERROR(scan({.images = images_.string()}), ErrorCode::invalid_argument, "no images found");
  EXPECT_SHARD_ERROR(scan({.images = (dir_.path() / "none").string()}), ErrorCode::not_found,
                     "no such folder");
}

TEST_F(Convert, TakesClassesOfAListRelativeToTheDeepestCommonFolder) {
  for (const char* name : {"b/2.jpg", "a/1.jpg", "a/0.jpg"}) write(images_ / name);
  const std::string at = images_.string();
  write(dir_.path() / "list.txt", at + "/b/2.jpg\r\n\n" + at + "/a/1.jpg\n" + at + "/./a/../a/0.jpg\n");
  InputList list = scan({.images = "@" + (dir_.path() / "list.txt").string()});
  EXPECT_EQ(list.root, at + "/");
  EXPECT_THAT(paths(list), ElementsAre("a/0.jpg", "a/1.jpg", "b/2.jpg"));
  EXPECT_THAT(labels_from_folders(list).classes, ElementsAre("a", "b"));
}

TEST_F(Convert, RefusesAListThatNamesAPathTwiceOrLeavesTheRoot) {
  for (const char* name : {"a/1.jpg", "b/1.jpg"}) write(images_ / name);
  const std::string at = images_.string();
  write(dir_.path() / "twice.txt", at + "/a/1.jpg\n" + at + "/a/1.jpg\n");
  EXPECT_SHARD_ERROR(scan({.images = "@" + (dir_.path() / "twice.txt").string()}),
                     ErrorCode::invalid_argument, "listed twice");
  write(dir_.path() / "outside.txt", at + "/a/1.jpg\n" + at + "/b/1.jpg\n");
  EXPECT_SHARD_ERROR((scan({.images = "@" + (dir_.path() / "outside.txt").string(), .root = images_ / "a"})),
                     ErrorCode::invalid_argument, "not below `root`");
}

TEST_F(Convert, ReadsWholeNumbersNamesAndValuesFromCsv) {
  for (const char* name : {"1", "2", "3,\"x\""}) write(images_ / name);
  auto labels = [&](const std::string& csv) {
    write(dir_.path() / "l.csv", csv);
    InputList list = scan({.images = images_.string()});
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
    InputList list = scan({.images = images_.string()});
    EXPECT_SHARD_ERROR(labels_from_csv(list, dir_.path() / "l.csv"), ErrorCode::invalid_argument, piece);
  };
  refuse("1,0\nnone,1\n", "l.csv\": line 2: no such image: \"none\"");
  refuse("1,0\n1,1\n", "l.csv\": line 2: \"1\" is labelled twice");
  refuse("1,0\n2\n", "l.csv\": line 2: 1 fields");
  refuse("1,0.5,1\n2,nan,1\n", "\"nan\" is not a finite number");
  refuse("1,\"0\n", "has no closing quote");
  refuse("", "has no rows");
}

TEST_F(Convert, RejectsImagesThatTheTableDoesNotName) {
  for (const char* name : {"1", "2"}) write(images_ / name);
  write(dir_.path() / "l.csv", "2,1\n");
  InputList list = scan({.images = images_.string()});
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
    EXPECT_SHARD_ERROR(make_plan(options), ErrorCode::invalid_argument, "is inside `images`");
  }
  options.images = "/";
  options.out = dir_.path() / "out";
  EXPECT_SHARD_ERROR(make_plan(options), ErrorCode::invalid_argument, "is inside `images`");
}

TEST_F(Convert, DigestsKeysAndLabelsOfTheSource) {
  write(images_ / "a/1");
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  const std::string before = make_plan(options).source_digest;
  EXPECT_EQ(make_plan(options).source_digest, before);
  write(images_ / "a/notes.txt", "no image");  // and what is no input does not belong to it
  EXPECT_EQ(make_plan(options).source_digest, before);
  fs::create_directories(images_ / "0");
  fs::create_symlink("nowhere", images_ / "0/1");  // a class whose image cannot be read moves the label of a
  EXPECT_NE(make_plan(options).source_digest, before);
}

TEST_F(Convert, DigestsSizesButNotTimesOfTheSource) {
  write(images_ / "a/1.png", "one");
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  const Plan before = make_plan(options);
  EXPECT_THAT(before.sizes, ElementsAre(3U));
  fs::last_write_time(images_ / "a/1.png", fs::file_time_type::clock::now() - std::chrono::hours(100));
  EXPECT_EQ(make_plan(options).source_digest, before.source_digest);
  write(images_ / "a/1.png", "four");
  const Plan after = make_plan(options);
  EXPECT_NE(after.source_digest, before.source_digest);
  EXPECT_EQ(after.names_digest, before.names_digest);
  EXPECT_SHARD_ERROR(before.require_size(0, 4), ErrorCode::invalid_argument,
                     "\"a/1.png\" has 4 bytes, but had 3");
}

TEST_F(Convert, ReadsTheRowsOfInputsThatItWrote) {
  const std::vector<InputRow> rows{{0, "a/\"b\", c.jpg", 7, 0x0123456789abcdefU}, {1, "a/\\x0a.jpg", {}, {}}};
  std::string text = kInputsHeader;
  for (const InputRow& row : rows) text += serialize_row(row);
  write(dir_.path() / "out" / kInputsFile, text);
  std::vector<InputRow> found;
  const auto read = [&] {
    found.clear();
    return read_input_rows(dir_.path() / "out", nullptr, [&](InputRow&& row) { found.push_back(row); });
  };
  ASSERT_TRUE(read());
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].index, i);
    EXPECT_EQ(found[i].key, rows[i].key);
    EXPECT_EQ(found[i].size_bytes, rows[i].size_bytes);
    EXPECT_EQ(found[i].digest, rows[i].digest);
  }
  for (const std::string& damaged : {text.substr(0, text.size() - 1), text + "x,1\n", text + "x,1,zz\n",
                                     text + "x,-1,\n", text + "\"x,1,\n", std::string("path\n")}) {
    write(dir_.path() / "out" / kInputsFile, damaged);
    EXPECT_FALSE(read()) << damaged;
  }
}

TEST(FolderLocks, KeepTheSameRankOutAndLetOthersIn) {
  const testing::TempDir dir;
  const fs::path file = dir.path() / "conversion.json";
  write(file);
  FolderLock shared;
  ASSERT_EQ(shared.try_lock(dir.path(), false), LockResult::taken);
  EXPECT_EQ(shared.try_lock(dir.path(), false), LockResult::taken);  // it has it
  FolderLock also;
  EXPECT_EQ(also.try_lock(dir.path(), false), LockResult::taken);
  FolderLock alone;
  ASSERT_EQ(alone.try_lock(dir.path(), true), LockResult::busy);
  EXPECT_EQ(alone.holder(), ::getpid());
  EXPECT_FALSE(alone.held());

  RankLock first;
  ASSERT_EQ(first.try_lock(file, 1, 4), LockResult::taken);
  RankLock other;
  for (const auto& [rank, world] :
       {std::pair(0U, 4U), {2U, 4U}, {1U, 3U}, {1U, 5U}, {0U, 1U << 20U}, {4U, 1U << 31U}})
    EXPECT_EQ(RankLock().try_lock(file, rank, world), LockResult::taken) << rank << " of " << world;
  ASSERT_EQ(other.try_lock(file, 1, 4), LockResult::busy);
  EXPECT_EQ(other.holder(), ::getpid());
  {
    RankLock large;
    ASSERT_EQ(large.try_lock(file, 4, 1U << 31U), LockResult::taken);
    EXPECT_EQ(other.try_lock(file, 4, 1U << 31U), LockResult::busy);
  }
  EXPECT_EQ(other.try_lock(file, 4, 1U << 31U), LockResult::taken);
  EXPECT_EQ(other.try_lock(dir.path() / "none", 0, 1), LockResult::gone);
}

TEST(FolderLocks, LeaveWithAForkedChildStillHoldingTheDescriptor) {
  const testing::TempDir dir;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ::pid_t child = 0;
  {
    FolderLock lock;
    ASSERT_EQ(lock.try_lock(dir.path(), true), LockResult::taken);
    child = ::fork();
    if (child == 0) {  // holds a copy of every descriptor until it is told to end
      char byte = 0;
      ::close(pipe[1]);
      ::_exit(::read(pipe[0], &byte, 1) == 0 ? 0 : 1);
    }
    ASSERT_GT(child, 0);
  }
  EXPECT_EQ(FolderLock().try_lock(dir.path(), true), LockResult::taken);
  ::close(pipe[1]);
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST(ConvertOptions, RefuseWhatCannotBe) {
  Options options;
  options.images = "x";
  options.out = "y";
  options.rank = 2;
  options.world_size = 2;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`rank` 2");
  options.world_size = 3;
  options.overwrite = true;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`overwrite` with several processes");
  options.overwrite = false;
  options.shard_size_bytes = 1000;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, "`shard_size_bytes` 1000");
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
  info.provenance = provenance_of(options);
  const image::PreprocessOptions back = preprocess_options_from(info);
  EXPECT_EQ(back.squash, options.preprocess.squash);
  EXPECT_EQ(back.crop, options.preprocess.crop);
  EXPECT_EQ(back.filter, options.preprocess.filter);
  EXPECT_EQ(back.sample_spec(), info.spec);
  EXPECT_EQ(decode_options_from(info).fast_min_short_side, 300U);
  EXPECT_EQ(decode_options_from(info).on_warning, image::OnWarning::harmless);
  info.provenance["on_warning"] = "accept";
  EXPECT_EQ(decode_options_from(info).on_warning, image::OnWarning::accept);
  info.provenance["on_warning"] = "guess";
  EXPECT_SHARD_ERROR(decode_options_from(info), ErrorCode::unsupported, "on_warning \"guess\"");
  info.provenance["filter"] = "hamming";
  EXPECT_SHARD_ERROR(preprocess_options_from(info), ErrorCode::unsupported, "filter \"hamming\"");
}

TEST(ConvertFingerprint, ChangesWithEveryOptionThatShapesTheBytes) {
  const std::vector<ColumnSpec> labels{{"labels", DType::i64, {}}};
  std::set<std::string> seen;
  auto add = [&](const std::function<void(Options&)>& change) {
    Options options;
    change(options);
    seen.insert(spec_of(options, labels).fingerprint);
  };
  add([](Options&) {});
  add([](Options& o) { o.preprocess.filter = image::Filter::box; });
  add([](Options& o) { o.preprocess.resize_short = 300; });
  add([](Options& o) { o.preprocess.crop = image::Size{200, 200}; });
  add([](Options& o) { o.preprocess.dtype = DType::bf16; });
  add([](Options& o) { o.preprocess.layout = Layout::nhwc; });
  add([](Options& o) { o.preprocess.normalization.mean[1] = 0.25F; });
  add([](Options& o) { o.preprocess.normalization.std[2] = 0.25F; });
  add([](Options& o) { o.codec = {CodecSpec::Kind::zstd, 3}; });
  add([](Options& o) { o.codec = {CodecSpec::Kind::zstd, 4}; });
  add([](Options& o) { o.samples_per_shard = 10; });
  add([](Options& o) { o.fast_decode = true; });
  add([](Options& o) { o.on_warning = image::OnWarning::accept; });
  add([](Options& o) { o.on_warning = image::OnWarning::reject; });
  EXPECT_EQ(seen.size(), 14U);
  Options spelled_out;
  spelled_out.on_warning = image::OnWarning::harmless;
  EXPECT_EQ(spec_of(spelled_out, labels).fingerprint, spec_of(Options{}, labels).fingerprint);
  for (const ColumnSpec& column :
       {ColumnSpec{"x", DType::f32, {}}, ColumnSpec{"x", DType::f32, {4}},
        ColumnSpec{"x", DType::f32, {}, ColumnKind::ragged}, ColumnSpec{"y", DType::f32, {}}})
    seen.insert(spec_of(Options{}, {labels.front(), column}).fingerprint);
  EXPECT_EQ(seen.size(), 18U);
}

TEST(Options, PutAtMostOneHundredMillionSamplesIntoAShard) {
  Options options;
  options.images = "in";
  options.out = "out";
  options.preprocess.crop = image::Size{1, 1};  // of 6 bytes, so that a shard of 1 GiB would hold more
  EXPECT_EQ(options.per_shard(), 100'000'000U);
  options.check();
  options.samples_per_shard = 100'000'001;
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument,
                     "`samples_per_shard` is 100000001; it must be 1 to 100,000,000");
}

TEST(Columns, AreWrittenAsText) {
  const auto parsed = [](const std::string& text) {
    Options options;
    apply({{"columns", text}}, options);
    return options.columns.at(0);
  };
  constexpr ColumnKind kRagged = ColumnKind::ragged;
  EXPECT_EQ(parsed("caption:text"), (ColumnSpec{"caption", DType::u8, {}, ColumnKind::text}));
  EXPECT_EQ(parsed("a:b:float32"), (ColumnSpec{"a:b", DType::f32, {}}));
  EXPECT_EQ(parsed("pose:f16[2,3]"), (ColumnSpec{"pose", DType::f16, {2, 3}}));
  EXPECT_EQ(parsed("ids:i64[]"), (ColumnSpec{"ids", DType::i64, {}, kRagged}));
  EXPECT_EQ(parsed("boxes:f32[,4]"), (ColumnSpec{"boxes", DType::f32, {4}, kRagged}));
  EXPECT_EQ(parsed("points:f32[,17,3]"), (ColumnSpec{"points", DType::f32, {17, 3}, kRagged}));
  for (const char* bad :
       {"", "x", ":text", "x:", "x:word", "x:f32[", "x:f32[0]", "x:f32[3", "x:f32[3,]", "x:f32[,]",
        "x:f32[a]", "x:f32[-1]", "x:f32[3]4", "x:text[3]", "x:f32[99999999999999999999]"})
    EXPECT_SHARD_ERROR(parsed(bad), ErrorCode::invalid_argument, "expected NAME:TYPE");
}

TEST(Columns, RowsAreParsedByTheirType) {
  const auto bytes = [](const ColumnSpec& column, std::string_view field) {
    std::vector<int> values;
    for (const std::byte b : parse_rows(column, field)) values.push_back(std::to_integer<int>(b));
    return values;
  };
  using Values = std::vector<int>;
  EXPECT_EQ(bytes({"x", DType::u8, {}}, "255"), (Values{255}));
  EXPECT_EQ(bytes({"x", DType::i16, {2}}, " -2  +1 "), (Values{254, 255, 1, 0}));
  EXPECT_EQ(bytes({"x", DType::f32, {}}, "1.5"), (Values{0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(bytes({"x", DType::f16, {}}, "1.5"), (Values{0, 0x3e}));
  EXPECT_EQ(bytes({"x", DType::bf16, {}}, "1.5"), (Values{0xc0, 0x3f}));
  EXPECT_EQ(bytes({"x", DType::f64, {}}, "-2"), (Values{0, 0, 0, 0, 0, 0, 0, 0xc0}));
  EXPECT_EQ(bytes({"x", DType::boolean, {2}}, "true 0"), (Values{1, 0}));
  EXPECT_EQ(bytes({"x", DType::u8, {2}, ColumnKind::ragged}, ""), (Values{}));
  EXPECT_EQ(bytes({"x", DType::u8, {2}, ColumnKind::ragged}, "1 2 3 4"), (Values{1, 2, 3, 4}));
  EXPECT_EQ(bytes({"x", DType::u8, {}, ColumnKind::text}, " a\n"), (Values{32, 97, 10}));
  const auto refused = [&](const ColumnSpec& column, std::string_view field, const char* why) {
    EXPECT_SHARD_ERROR(parse_rows(column, field), ErrorCode::invalid_argument, why);
  };
  for (const char* bad : {"256", "-1", "1.5", "x", "1x", "0x1"})
    refused({"x", DType::u8, {}}, bad, "not a finite number of u8");
  for (const char* bad : {"nan", "inf", "1e39", "1,5"})
    refused({"x", DType::f32, {}}, bad, "not a finite number of f32");
  refused({"x", DType::f16, {}}, "65520", "not a finite number of f16");
  refused({"x", DType::boolean, {}}, "2", "not a finite number of bool");
  refused({"x", DType::f32, {}}, "", "0 numbers: 1 are needed");
  refused({"x", DType::f32, {3}}, "1 2", "2 numbers: 3 are needed");
  refused({"x", DType::f32, {2}, ColumnKind::ragged}, "1 2 3", "3 numbers: a multiple of 2 are needed");
  refused({"x", DType::u8, {}, ColumnKind::text}, "\xc3", "not UTF-8");
}

TEST(PlanRecord, NamesWhatDiffers) {
  PlanRecord there{"f1",          "s1", 10, 5, {{"filter", "bilinear"}, {"crop", "center 224x224"}},
                   Stage::staged, ""};
  EXPECT_EQ(parse_plan(serialize_plan(there)).stage, Stage::staged);
  EXPECT_NO_THROW(require_same_plan(parse_plan(serialize_plan(there)), there, "out"));
  PlanRecord asked = there;
  asked.fingerprint = "f2";
  asked.options["filter"] = "box";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "filter: \"bilinear\" recorded, \"box\" requested");
  asked = there;
  asked.inputs = 11;
  asked.source_digest = "s2";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "inputs: \"10\" recorded, \"11\" requested");
  asked = there;
  asked.source_digest = "s2";
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out"), ErrorCode::invalid_argument,
                     "not the same as before");
  EXPECT_SHARD_ERROR(require_same_plan(there, asked, "out", [] { return std::string("\n  'a': gone"); }),
                     ErrorCode::invalid_argument, "other inputs:\n  'a': gone\nuse `refresh`");
}

TEST(PlanRecord, RefusesAFileThatIsNotOne) {
  EXPECT_SHARD_ERROR(parse_plan("{"), ErrorCode::corrupt, "conversion.json");
  EXPECT_SHARD_ERROR(parse_plan(R"({"version": 99})"), ErrorCode::unsupported, "another version");
  EXPECT_SHARD_ERROR(parse_plan(R"({"version": "2"})"), ErrorCode::corrupt, "conversion.json");
  const testing::TempDir dir;
  write(dir.path() / kPlanFile, "[1");
  EXPECT_SHARD_ERROR(read_plan(dir.path()), ErrorCode::corrupt, "use `overwrite` to replace");
}

TEST(ShardReceipt, ComesBackAsItWas) {
  Receipt receipt;
  receipt.shard = {"shard-00003.safetensors", 7, 4096, 0xfedcba9876543210U};
  receipt.rejects = {{"a/\"b\".jpg", "is empty, or \"so\""}};
  receipt.inputs = "a,1,\n\"b,\",2,0123456789abcdef\n";
  const PlanRecord plan{"f1", "s1", 10, 5, {}, {}, {}};
  const Receipt back = parse_receipt(serialize_receipt(receipt, plan, 3), plan, 3);
  EXPECT_EQ(back.shard, receipt.shard);
  EXPECT_EQ(back.rejects, receipt.rejects);
  EXPECT_TRUE(back.warnings.empty());
  EXPECT_EQ(serialize_receipt(receipt, plan, 3).find("warnings"), std::string::npos)
      << "only where there are some";
  receipt.warnings.images[1] = 12;
  receipt.warnings.images[9] = 1;
  EXPECT_EQ(parse_receipt(serialize_receipt(receipt, plan, 3), plan, 3).warnings, receipt.warnings);
  EXPECT_EQ(back.inputs, receipt.inputs);
}

TEST(ShardReceipt, IsNoneWhenItIsDamagedOrOfAnotherConversion) {
  const testing::TempDir dir;
  const PlanRecord plan{"f1", "s1", 10, 5, {}, {}, {}};
  Receipt receipt;
  receipt.shard = {shard_name(3), 2, 5, 0xfedcba9876543210U};
  receipt.inputs = "a,1,\n";
  const std::string whole = serialize_receipt(receipt, plan, 3);
  const fs::path path = receipt_path(dir.path(), 3);
  write(dir.path() / shard_name(3), "12345");
  const auto found = [&](const std::string& text) {
    write(path, text);
    return finished_shard(dir.path(), plan, 3).has_value();
  };
  EXPECT_TRUE(found(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(found(whole.substr(0, size))) << size;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_FALSE(found(flipped)) << at;
  }
  for (const char* text :
       {"[]\n", "{}", "null\n", "\n\n", "\xff\xfe\n\xff", R"({"version": 2, "head_digest": "x"})"})
    EXPECT_FALSE(found(text)) << text;
  EXPECT_FALSE(found(whole + whole));
  EXPECT_TRUE(found(whole));
  fs::resize_file(path, std::uint64_t{1} << 40U);  // a hole of a terabyte: not read
  EXPECT_FALSE(finished_shard(dir.path(), plan, 3).has_value());
  EXPECT_TRUE(found(whole));
  PlanRecord other = plan;
  other.source_digest = "s2";
  EXPECT_FALSE(finished_shard(dir.path(), other, 3).has_value());
  write(dir.path() / shard_name(3), "1234");
  EXPECT_FALSE(finished_shard(dir.path(), plan, 3).has_value());
}

class Launcher : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_MCA_ess_base_jobid",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PMI_FD",
                             "PMI_PORT",
                             "PMIX_RANK",
                             "PMIX_NAMESPACE",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_ARRAY_TASK_ID",
                             "SLURM_ARRAY_TASK_COUNT",
                             "SLURM_ARRAY_TASK_MIN",
                             "SLURM_ARRAY_TASK_MAX",
                             "SLURM_ARRAY_TASK_STEP",
                             "RANK",
                             "WORLD_SIZE",
                             "TORCHELASTIC_RUN_ID",
                             "JOB_COMPLETION_INDEX",
                             "AWS_BATCH_JOB_ARRAY_INDEX",
                             "AWS_BATCH_JOB_ARRAY_SIZE"})
      ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  using Variables = std::vector<std::pair<const char*, const char*>>;
  static void set(const Variables& variables) {
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  // "rank/world", with '*' when the launcher ends all processes together; "none".
  std::string placed(const Variables& variables, std::optional<std::uint32_t> world = std::nullopt) {
    SetUp();
    set(variables);
    const auto found = rank_from_environment(world);
    if (!found) return "none";
    return std::to_string(found->rank) + "/" + std::to_string(found->world_size) +
           (found->all_or_none ? "*" : "");
  }
  void refused(const Variables& variables, const std::string& piece,
               std::optional<std::uint32_t> world = {}) {
    SetUp();
    set(variables);
    EXPECT_SHARD_ERROR(rank_from_environment(world), ErrorCode::invalid_argument, piece);
  }

  const Variables step_{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "5"}, {"SLURM_STEP_NUM_TASKS", "5"}};
  const Variables array_{{"SLURM_ARRAY_TASK_ID", "7"},
                         {"SLURM_ARRAY_TASK_COUNT", "3"},
                         {"SLURM_ARRAY_TASK_MIN", "3"},
                         {"SLURM_ARRAY_TASK_MAX", "11"},
                         {"SLURM_ARRAY_TASK_STEP", "4"}};
  static Variables both(Variables a, const Variables& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

TEST_F(Launcher, ReadsEachLaunchersVariables) {
  EXPECT_EQ(placed({}), "none");
  const Variables ompi{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "5"}};
  EXPECT_EQ(placed(ompi), "2/5");
  EXPECT_EQ(placed(both(ompi, {{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "2"}})), "2/5*");
  EXPECT_EQ(placed({{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}}), "2/5");
  EXPECT_EQ(placed({{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"PMI_FD", "9"}}), "2/5*");
  EXPECT_EQ(placed({{"RANK", "2"}, {"WORLD_SIZE", "5"}}), "2/5");
  EXPECT_EQ(placed({{"RANK", "2"}, {"WORLD_SIZE", "5"}, {"TORCHELASTIC_RUN_ID", "none"}}), "2/5*");
  EXPECT_EQ(placed(step_), "2/5");
  EXPECT_EQ(placed(both(step_, {{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"PMI_FD", "9"}})),
            "2/5");  // --mpi=pmi2
  EXPECT_EQ(placed(array_), "1/3");
  EXPECT_EQ(placed({{"AWS_BATCH_JOB_ARRAY_INDEX", "2"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "5"}}), "2/5");
  EXPECT_EQ(placed({{"JOB_COMPLETION_INDEX", "2"}}, 5), "2/5");
  EXPECT_EQ(placed({{"PMIX_RANK", "2"}}, 5), "2/5");
}

TEST_F(Launcher, CountsSlurmInAStepOfSrunOnly) {
  EXPECT_EQ(placed({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "none");  // a batch script
  EXPECT_EQ(placed({{"SLURM_NTASKS", "8"}}), "none");                         // a shell of salloc
  for (const char* special : {"4294967290", "4294967291", "4294967292", "batch"})
    EXPECT_EQ(placed({{"SLURM_STEP_ID", special},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_STEP_NUM_TASKS", "1"}}),
              "none");
  // A batch script that was submitted from a step of one task has that step's variables.
  EXPECT_EQ(placed({{"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "8"},
                    {"SLURM_STEP_NUM_TASKS", "1"}}),
            "none");
  refused(
      {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}},
      "contradict each other");
}

TEST_F(Launcher, TakesTheInnermostOfSeveralAndMultipliesAnArray) {
  const Variables ompi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(placed(both(step_, ompi)), "1/4");  // mpirun starts its daemons with srun
  EXPECT_EQ(placed(both(step_, {{"RANK", "6"}, {"WORLD_SIZE", "10"}, {"TORCHELASTIC_RUN_ID", "x"}})),
            "6/10*");
  EXPECT_EQ(placed(both(array_, step_)), "7/15");
  EXPECT_EQ(placed(both(array_, ompi)), "5/12");
  EXPECT_EQ(placed(both(step_, {{"WORLD_SIZE", "5"}})), "2/5");
}

TEST_F(Launcher, RefusesHalfAPairNonsenseAndContradictions) {
  refused({{"RANK", "1"}}, "RANK is set without WORLD_SIZE");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "1"}}, "must be less than");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "two"}}, "WORLD_SIZE=\"two\"");
  refused({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK=\"-1\"");
  refused({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, "is not a number");
  refused({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
          "SLURM_STEP_ID is set without SLURM_PROCID");
  refused({{"SLURM_ARRAY_TASK_ID", "1"}}, "SLURM_ARRAY_TASK_ID is set without SLURM_ARRAY_TASK_COUNT");
  refused({{"AWS_BATCH_JOB_ARRAY_INDEX", "1"}}, "without AWS_BATCH_JOB_ARRAY_SIZE");
  refused(both(array_, {{"SLURM_ARRAY_TASK_COUNT", "2"}}), "not evenly spaced");
  refused(both(array_, {{"SLURM_ARRAY_TASK_ID", "8"}}), "not evenly spaced");
  refused(both(array_, {{"SLURM_ARRAY_TASK_STEP", "0"}}), "not evenly spaced");
  refused(both(step_, {{"RANK", "2"}, {"WORLD_SIZE", "6"}}), "WORLD_SIZE=6 contradicts rank 2 of 5");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"JOB_COMPLETION_INDEX", "0"}},
          "JOB_COMPLETION_INDEX=0 contradicts");
  refused({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "`world_size` 3 contradicts", 3);
  refused({{"JOB_COMPLETION_INDEX", "0"}}, "`world_size` N");
  refused({{"JOB_COMPLETION_INDEX", "5"}}, "must be less than", 5);
}

}  // namespace
}  // namespace shard::convert
