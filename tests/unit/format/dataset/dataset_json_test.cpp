// dataset.json: what is read back, and what is refused.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <new>

#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/format/dataset_text.hpp"
#include "support/rounds.hpp"

namespace shard {
namespace {

using namespace shard::testing;

TEST(DatasetJson, ReadsBackEqualAndIsDeterministic) {
  const DatasetInfo info = example();
  const std::string text = serialize_dataset(info);
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.spec, info.spec);
  EXPECT_EQ(found.normalization, info.normalization);
  EXPECT_EQ(found.provenance, info.provenance);
  EXPECT_EQ(found.codec, info.codec);
  EXPECT_EQ(found.fingerprint, info.fingerprint);
  EXPECT_EQ(found.classes, info.classes);
  EXPECT_EQ(found.source_digest, info.source_digest);
  EXPECT_EQ(found.inputs, 8U);
  EXPECT_EQ(found.rejects, 1U);
  EXPECT_EQ(found.samples_per_shard, 4U);
  EXPECT_EQ(found.shards, info.shards);
  EXPECT_EQ(found.samples(), 7U);
  ASSERT_EQ(found.columns.size(), 2U);
  EXPECT_EQ(found.columns[1].row_shape, info.columns[1].row_shape);
  EXPECT_EQ(serialize_dataset(found), text);
}

TEST(DatasetJson, ColumnsThatAreNotFixedMakeItVersion2) {
  DatasetInfo info = example();
  EXPECT_NE(serialize_dataset(info).find("\"version\": 1,"), std::string::npos);
  info.columns.push_back({"caption", DType::u8, {}, ColumnKind::text});
  info.columns.push_back({"boxes", DType::f32, {4}, ColumnKind::ragged});
  const std::string text = serialize_dataset(info);
  EXPECT_NE(text.find("\"version\": 2,"), std::string::npos);
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.columns, info.columns);
  EXPECT_EQ(serialize_dataset(found), text);
  const auto refused = [&](const std::string& from, const std::string& to, ErrorCode code, const char* why) {
    EXPECT_SHARD_ERROR(parse_dataset(edited(text, from, to)), code, why);
  };
  refused("\"version\": 2", "\"version\": 1", ErrorCode::corrupt, "version 1 does not have columns of kind");
  refused("\"version\": 2", "\"version\": 4", ErrorCode::unsupported, "reads versions 1 to 3");
  refused("\"version\": 2", "\"version\": 0", ErrorCode::unsupported, "reads versions 1 to 3");
  refused("\"kind\": \"text\"", "\"kind\": \"image\"", ErrorCode::unsupported, "kind \"image\"");
  refused("\"kind\": \"text\"", "\"kind\": \"fixed\"", ErrorCode::unsupported, "kind \"fixed\"");
  refused("\"kind\": \"ragged\"", "\"kind\": 3", ErrorCode::corrupt, "a number is not allowed");
  refused("\"kind\": \"ragged\"", "\"kin\": \"ragged\"", ErrorCode::corrupt, "a string is not allowed");
  refused("\"row_shape\": [4], \"kind\"", "\"kind\"", ErrorCode::corrupt, "3 members: it must have 4");
}

TEST(DatasetJson, SamplesOfAnySizeMakeItVersion3) {
  DatasetInfo info = example();
  info.codec = {};
  info.spec.height = info.spec.width = 0;
  info.fields = {{"mask", FieldRole::mask, {DType::u8, Layout::nhwc, 1, 0, 0}, {}, {}}};
  info.shards[0].largest = {{480, 640, 921600, 921600}, {480, 640, 307200, 307201}};
  info.shards[1].largest = {{500, 20, 30000, 30000}, {500, 20, 10000, 400000}};
  const std::string text = serialize_dataset(info);
  EXPECT_NE(text.find("\"version\": 3,"), std::string::npos);
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.shards, info.shards);
  EXPECT_EQ(found.spec, info.spec);
  EXPECT_EQ(serialize_dataset(found), text);
  EXPECT_EQ(found.largest(), (LargestSample{500, 640, 921600, 921600}));
  EXPECT_EQ(found.largest(0), (LargestSample{500, 640, 307200, 400000}));
  EXPECT_EQ(example().largest().sample_bytes, example().spec.size_bytes());
  const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
    EXPECT_SHARD_ERROR(parse_dataset(edited(text, from, to)), ErrorCode::corrupt, why);
  };
  refused("\"version\": 3", "\"version\": 2", "version 2 does not have samples of any size");
  refused(", \"largest\": [[480, 640, 921600, 921600], [480, 640, 307200, 307201]]", "",
          "has the largest samples of 0 image fields: 2 have samples of any size");
  refused("[480, 640, 921600, 921600], ", "", "of 1 image fields");
  refused("[480, 640, 921600, 921600]", "[480, 640, 921600]",
          "[480, 640, 921600]: it must be rows and columns");
  refused("[480, 640, 921600, 921600]", "[480, 640, 921600, 921600, 1]", "more than four numbers");
  refused("[480, 640, 921600, 921600]", "[65536, 640, 921600, 921600]", "up to 65535");
  refused("[480, 640, 921600, 921600]", "\"480\"", "a string is not allowed");
  refused("[480, 640, 921600, 921600]", "[[480], 640, 921600, 921600]", "is not allowed");
  refused("[480, 640, 921600, 921600]", "[480.5, 640, 921600, 921600]", "is not allowed");
  refused("\"largest\": [[480", "\"greatest\": [[480", "is not allowed");
}

TEST(DatasetJson, SamplesPerShardMayBeAbsent) {
  const std::string text = edited(serialize_dataset(example()), "  \"samples_per_shard\": 4,\n", "");
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.samples_per_shard, 0U);
  EXPECT_EQ(serialize_dataset(found), text);
}

DatasetInfo example_of_parts() {
  DatasetInfo info = example();
  info.parts = {{"0000000000000001", 5, 1, 1}, {"0000000000000002", 3, 0, 1}};
  return info;
}

TEST(DatasetJson, PartsReadBackEqual) {
  const std::string text = serialize_dataset(example_of_parts());
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.parts, example_of_parts().parts);
  EXPECT_EQ(serialize_dataset(found), text);
  EXPECT_TRUE(parse_dataset(serialize_dataset(example())).parts.empty());
}

TEST(DatasetJson, PartsMustSumUpToTheWhole) {
  const auto refuse = [](const std::function<void(DatasetInfo&)>& change, const std::string& piece) {
    DatasetInfo info = example_of_parts();
    change(info);
    EXPECT_SHARD_ERROR(parse_dataset(serialize_dataset(info)), ErrorCode::corrupt, piece);
  };
  refuse([](DatasetInfo& info) { info.parts.pop_back(); }, "one part");
  refuse([](DatasetInfo& info) { info.parts[0].inputs = 4; }, "sums over the parts");
  refuse([](DatasetInfo& info) { info.parts[0].inputs = ~std::uint64_t{0}; }, "sums over the parts");
  refuse([](DatasetInfo& info) { info.parts[1].rejects = 1; }, "sums over the parts");
  refuse([](DatasetInfo& info) { info.parts[1].shards = 2; }, "sums over the parts");
  refuse([](DatasetInfo& info) { info.parts[1].source_digest = "2"; }, "16 lower-case");
  const std::string text = serialize_dataset(example_of_parts());
  EXPECT_SHARD_ERROR(parse_dataset(edited(text, ", \"rejects\": 1, \"shards\": 1}", ", \"rejects\": 1}")),
                     ErrorCode::corrupt, "must have 4");
}

TEST(DatasetJson, TargetsReadBackEqualAndAreLeftOutWhereNoneAreKnown) {
  const std::string text = serialize_dataset(example_of_targets());
  EXPECT_NE(
      text.find(
          "  \"targets\": {\n    \"boxes\": \"boxes\",\n    \"eyes\": \"keypoints\"\n  },\n  \"classes\""),
      std::string::npos)
      << text;
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.targets, example_of_targets().targets);
  EXPECT_EQ(serialize_dataset(found), text);
  EXPECT_EQ(serialize_dataset(example()).find("targets"), std::string::npos);
}

TEST(DatasetJson, TargetsThatNoColumnCanBeAreRefused) {
  const std::string text = serialize_dataset(example_of_targets());
  const auto refuse = [&](const std::string& from, const std::string& to, ErrorCode code,
                          const std::string& piece) {
    EXPECT_SHARD_ERROR(parse_dataset(edited(text, from, to)), code, piece);
  };
  refuse("\"eyes\": \"keypoints\"", "\"ears\": \"keypoints\"", ErrorCode::corrupt, "targets names \"ears\"");
  refuse("\"eyes\": \"keypoints\"", "\"eyes\": \"boxes\"", ErrorCode::corrupt,
         "column \"eyes\" is f32 [2, 3]");
  refuse("\"eyes\": \"keypoints\"", "\"boxes\": \"keypoints\"", ErrorCode::corrupt, "\"boxes\" occurs twice");
  refuse("\"eyes\": \"keypoints\"", "\"eyes\": 3", ErrorCode::corrupt, "is not allowed");
  refuse("\"eyes\": \"keypoints\"", "\"eyes\": \"polygons\"", ErrorCode::unsupported,
         "\"eyes\" is \"polygons\": this build knows boxes and keypoints");
}

TEST(DatasetJson, TablesReadBackEqualAndMayBeAbsent) {
  EXPECT_TRUE(parse_dataset(serialize_dataset(example())).tables.empty());
  DatasetInfo info = example();
  info.tables = {{kInputsFile, 123, 7}, {kRejectsFile, 12, ~std::uint64_t{0}}};
  const std::string text = serialize_dataset(info);
  const DatasetInfo found = parse_dataset(text);
  EXPECT_EQ(found.tables, info.tables);
  EXPECT_EQ(found.table(kInputsFile)->size_bytes, 123U);
  EXPECT_EQ(found.table("other.csv"), nullptr);
  EXPECT_EQ(serialize_dataset(found), text);
  const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
    EXPECT_SHARD_ERROR(parse_dataset(edited(text, from, to)), ErrorCode::corrupt, why);
  };
  refused("\"inputs.csv\"", "\"rejects.csv\"", "occurs twice");
  refused("\"inputs.csv\"", "\"../inputs.csv\"", "must be a plain name");
  refused(", \"digest\": \"xxh3:0000000000000007\"", "", "2 members: it must have 3");
  refused("xxh3:0000000000000007", "xxh3:7", "digest is");
  refused("\"size_bytes\": 123", "\"size_bytes\": -1", "not an integer");
}

TEST(DatasetJson, MembersOfLaterVersionsAreSkipped) {
  const std::string text = serialize_dataset(example());
  const auto found = parse_dataset(
      edited(text, "  \"inputs\"", "  \"later\": {\"a\": [1, {\"b\": null}], \"a\": -1.5},\n  \"inputs\""));
  EXPECT_EQ(found.inputs, 8U);
  EXPECT_EQ(serialize_dataset(found), text);
}

TEST(DatasetJson, RefusesWhatBreaksARuleThoughTheDigestIsRight) {
  const std::string text = serialize_dataset(example());
  const auto corrupt = [&](const std::string& from, const std::string& to, const std::string& why) {
    EXPECT_SHARD_ERROR(parse_dataset(edited(text, from, to)), ErrorCode::corrupt, why);
  };
  corrupt("\"samples\": 7", "\"samples\": 8", "its shards have 7");
  corrupt("\"inputs\": 8", "\"inputs\": 9", "inputs is 9: it must be the sum of 7 samples and 1 rejects");
  corrupt("\"inputs\": 8,\n", "", "\"inputs\" is missing");
  corrupt("\"inputs\": 8", "\"inputs\": -8", "is not allowed");
  corrupt("\"inputs\": 8", "\"inputs\": 8.0", "is not allowed");
  corrupt("\"inputs\": 8", "\"inputs\": \"8\"", "is not allowed");
  corrupt("\"inputs\": 8", "\"inputs\": 8, \"inputs\": 8", "occurs twice");
  corrupt("\"s-1.safetensors\"", "\"s-0.safetensors\"", "occurs twice");
  corrupt("\"s-1.safetensors\"", "\"../s\"", "plain name");
  corrupt("\"s-1.safetensors\"", "\"..\"", "plain name");
  corrupt("\"s-1.safetensors\"", "\"\"", "plain name");
  corrupt("\"s-1.safetensors\"", "\"a\\u0000b\"", "plain name");
  corrupt("\"samples\": 3", "\"samples\": 0", "has 0 samples");
  corrupt("\"samples\": 3", "\"samples\": 18446744073709551615", "samples");
  corrupt("\"samples\": 3, ", "", "has 3 members");
  corrupt("\"samples\": 3", "\"samples\": 3, \"x\": 3", "is not allowed");
  corrupt("xxh3:0000000000000001", "xxh3:000000000000000X", "head_digest");
  corrupt("[4, 5, 3]", "[4, 5]", "2 axes: layout nhwc has 3");
  corrupt("[4, 5, 3]", "[4, 5, 3, 1]", "4 axes: layout nhwc has 3");
  corrupt("[4, 5, 3]", "[4, 5, 3, 1, 1]", "more than four");
  corrupt("[4, 5, 3]", "[4, 5, 9]", "version 1 does not have samples of more than 4 channels");
  corrupt("[4, 5, 3]", "[4, 5, 4097]", "channels is 4097");
  corrupt("[4, 5, 3]", "[4, 70000, 3]", "70000");
  corrupt("[4, 5, 3]", "[[4, 5, 3]]", "is not allowed");
  corrupt("0.229", "0", "std of channel 0");
  corrupt("0.456", "1e39", "finite numbers of float32");
  corrupt("\"cat\"", "\"ca\\nt\"", "not an escaped key");
  corrupt("\"dtype\": \"i64\"", "\"dtype\": \"u8\"", "labels must be");
  corrupt("\"fingerprint\": \"0123456789abcdef\"", "\"fingerprint\": \"0123\"", "16 lower-case");
  corrupt("\"format\": \"shard dataset\"", "\"format\": \"other\"", "format is \"other\"");
  EXPECT_SHARD_ERROR(parse_dataset(edited(text, "\"version\": 1", "\"version\": 4")), ErrorCode::unsupported,
                     "version 4");
  EXPECT_SHARD_ERROR(parse_dataset(edited(text, "zstd:7", "packed:4")), ErrorCode::unsupported, "packed:4");
  EXPECT_SHARD_ERROR(parse_dataset(""), ErrorCode::corrupt, "only 0 bytes");
  EXPECT_SHARD_ERROR(parse_dataset(text + "\n"), ErrorCode::corrupt, "does not end in its digest");
}

TEST(DatasetJson, DeepNestingIsRefused) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += '[';
  EXPECT_SHARD_ERROR(
      parse_dataset(edited(serialize_dataset(example()), "  \"inputs\"", "  \"later\": " + deep)),
      ErrorCode::corrupt, "more than 16 deep");
}

// Address space that parsing may take in addition to the text: as much again and 64 MiB. In a child, so that
// the limit is only its own.
bool parses_in_bounded_memory(const std::string& text) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * 4096 + text.size() + (std::uint64_t{64} << 20U);
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      parse_dataset(text);
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string repeated(const std::string& piece, std::size_t bytes) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < bytes; ++i) {
    if (i > 0) text += ", ";
    const auto at = piece.find('#');
    text += at == std::string::npos ? piece : piece.substr(0, at) + std::to_string(i) + piece.substr(at + 1);
  }
  return text;
}

TEST(DatasetJson, TakesNoMoreMemoryThanItsTextAnd64MiB) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  const std::string text = serialize_dataset(example());
  constexpr std::size_t kBytes = std::size_t{40} << 20;
  const std::string shard =
      "{\"file\": \"#\", \"samples\": 1, \"size_bytes\": 1, \"head_digest\": \"xxh3:0123456789abcdef\"}";
  const std::string long_name(200, 'n');
  const std::pair<std::string, std::string> hostile[] = {
      {"\"cat\"", repeated("\"\"", kBytes)},
      {"\"cat\"", repeated("\"sixteen-letters-\"", kBytes)},
      {"\"cat\"", repeated("\"" + long_name + "\"", kBytes)},
      {"\"cat\"", "\"" + std::string(kBytes, 'x') + "\""},
      {"\"shards\": [", "\"shards\": [" + repeated(shard, kBytes) + ", "},
      {"\"pipeline\": {", "\"pipeline\": {" + repeated("\"#\": \"\"", kBytes) + ", "},
      {"\"columns\": [", "\"columns\": [" +
                             repeated("{\"name\": \"#\", \"dtype\": \"u8\", \"row_shape\": [1]}", kBytes) +
                             ", "},
      {"  \"inputs\"", repeated("\"#\": 0", kBytes) + ", \"inputs\""},
      {"  \"inputs\"", "\"" + std::string(kBytes, 'x') + "\": 0, \"inputs\""},
  };
  for (const auto& [from, to] : hostile) {
    const std::string edit = edited(text, from, to);
    EXPECT_TRUE(parses_in_bounded_memory(edit)) << from << " with " << to.substr(0, 60);
  }
}

TEST(DatasetJson, CountsOfEntriesAreBounded) {
  const std::string text = serialize_dataset(example());
  EXPECT_SHARD_ERROR(parse_dataset(edited(text, "\"cat\"", repeated("\"a\"", 6 << 20))), ErrorCode::corrupt,
                     "more than 1048576 classes");
  EXPECT_SHARD_ERROR(parse_dataset(edited(text, "\"pipeline\": {",
                                          "\"pipeline\": {" + repeated("\"#\": \"\"", 1 << 20) + ", ")),
                     ErrorCode::corrupt, "more than 4096 pipeline values");
}

}  // namespace
}  // namespace shard
