// shardctl verify: whatever happened to a data set is found, named, and does not hide what else happened.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "support/programs/shardctl_fixture.hpp"

namespace shard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

namespace fs = std::filesystem;

class ShardctlVerify : public Shardctl {
 protected:
  void flip(const fs::path& file, std::size_t at, int mask = 0x10) {
    std::string bytes = read_whole(file);
    bytes.at(at) = static_cast<char>(bytes[at] ^ mask);
    write_whole(file, bytes);
  }
  Ran verify(const fs::path& what) { return run({"verify", what.string()}); }
};

TEST_F(ShardctlVerify, AcceptsAWholeDataSetAndAWholeShard) {
  for (const CodecSpec codec : {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd, 3}}) {
    const Made made =
        make(codec.kind == CodecSpec::Kind::none ? "none" : "zstd", DType::f16, Layout::nchw, codec);
    const Ran ran = verify(made.folder);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("ok: 2 shards, 6 samples"));
    EXPECT_EQ(verify(made.folder / "shard-00001.safetensors").code, 0);
    EXPECT_EQ(run({"verify", "--quiet", made.folder.string()}).out, "");
  }
}

TEST_F(ShardctlVerify, NamesShardSampleAndKeyOfEveryFailure) {
  const Made made = make("ds");
  const std::size_t sample_bytes = made.info.spec.size_bytes();
  const fs::path first = made.folder / "shard-00000.safetensors";
  const std::size_t images = read_whole(first).size() - 3 * sample_bytes;
  flip(first, images + sample_bytes + 5);
  flip(made.folder / "shard-00001.safetensors", images);
  flip(made.folder / "shard-00001.safetensors", images + 3 * sample_bytes - 1);
  const Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(
      ran.out,
      StartsWith("shard-00000.safetensors: sample 1 (d\xC3\xB6g/\\xff\\xfeinvalid.jpg): its XXH3-64"));
  EXPECT_THAT(ran.out, HasSubstr("shard-00001.safetensors: sample 0 (d\xC3\xB6g/3.jpg)"));
  EXPECT_THAT(ran.out, HasSubstr("shard-00001.safetensors: sample 2 (d\xC3\xB6g/5.jpg)"));
  EXPECT_THAT(ran.out, HasSubstr("3 problems found: 2 shards, 6 samples"));
  const Json json = Json::parse(run({"verify", "--json", made.folder.string()}).out);
  EXPECT_EQ(json.at("ok"), false);
  ASSERT_EQ(json.at("failures").size(), 3U);
  EXPECT_EQ(json.at("failures").at(2).at("sample"), 2);
  EXPECT_EQ(json.at("failures").at(2).at("file"), "shard-00001.safetensors");
}

TEST_F(ShardctlVerify, FindsFlippedBytesAllOverAShard) {
  for (const CodecSpec codec :
       {CodecSpec{}, CodecSpec{CodecSpec::Kind::zstd, 3}, CodecSpec{CodecSpec::Kind::packed, 3}}) {
    const Made made = make(to_string(codec), DType::u8, Layout::nchw, codec);
    const fs::path shard = made.folder / "shard-00000.safetensors";
    const std::string whole = read_whole(shard);
    for (std::size_t at = 0; at < whole.size(); at += at < 1500 ? 37 : 211) {
      flip(shard, at, at % 2 == 0 ? 0x01 : 0x80);
      const Ran ran = verify(made.folder);
      EXPECT_EQ(ran.code, 1) << "byte " << at << " of " << whole.size();
      EXPECT_THAT(ran.out, StartsWith("shard-00000.safetensors: "));
      write_whole(shard, whole);
    }
    EXPECT_EQ(verify(made.folder).code, 0);
  }
}

TEST_F(ShardctlVerify, FindsFlippedBytesInDatasetJsonAndStillChecksTheShards) {
  const Made made = make("ds");
  const fs::path file = made.folder / kDatasetFile;
  const std::string whole = read_whole(file);
  for (std::size_t at = 0; at < whole.size(); at += 23) {
    flip(file, at, 0x04);
    const Ran ran = verify(made.folder);
    EXPECT_EQ(ran.code, 1) << "byte " << at;
    EXPECT_THAT(ran.out, StartsWith("dataset.json: "));
    EXPECT_THAT(ran.out, HasSubstr("2 shards, 6 samples"));
    write_whole(file, whole);
  }
  write_whole(file, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(verify(made.folder).code, 1);
}

TEST_F(ShardctlVerify, FindsSwappedShards) {
  const Made made = make("ds");
  fs::rename(made.folder / "shard-00000.safetensors", made.folder / "x");
  fs::rename(made.folder / "shard-00001.safetensors", made.folder / "shard-00000.safetensors");
  fs::rename(made.folder / "x", made.folder / "shard-00001.safetensors");
  const Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, StartsWith("shard-00000.safetensors: "));
  EXPECT_THAT(ran.out, HasSubstr("2 problems found"));
}

TEST_F(ShardctlVerify, FindsMissingCutAndExtendedShards) {
  const Made made = make("ds");
  const fs::path shard = made.folder / "shard-00001.safetensors";
  const std::string whole = read_whole(shard);
  fs::remove(shard);
  Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("shard-00001.safetensors: is missing"));
  EXPECT_THAT(ran.out, HasSubstr("1 shard, 3 samples"));  // the other one was checked
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    write_whole(shard, whole.substr(0, size));
    EXPECT_EQ(verify(made.folder).code, 1) << size;
    EXPECT_EQ(verify(shard).code, 1) << size;
  }
  write_whole(shard, whole + "x");
  ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("dataset.json says"));
  EXPECT_EQ(verify(shard).code, 1);
}

TEST_F(ShardctlVerify, DoesNotWaitForAPipeInPlaceOfAShard) {
  const Made made = make("ds");
  const fs::path shard = made.folder / "shard-00001.safetensors";
  fs::remove(shard);
  ASSERT_EQ(mkfifo(shard.c_str(), 0600), 0);
  const Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("shard-00001.safetensors: is not a regular file"));
  EXPECT_EQ(verify(shard).code, 1);
  EXPECT_EQ(run({"ls", shard.string()}).code, 2);
}

TEST_F(ShardctlVerify, FindsAShardOfOtherOptions) {
  const Made made = make("ds");
  const Made other = make("other", DType::bf16);
  fs::copy_file(other.folder / "shard-00000.safetensors", made.folder / "shard-00000.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(verify(made.folder).code, 1);
}

TEST_F(ShardctlVerify, FindsShardsThatNobodyNamed) {
  const Made made = make("ds");
  fs::copy_file(made.folder / "shard-00000.safetensors", made.folder / "shard-00007.safetensors");
  const Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("shard-00007.safetensors: is not named by dataset.json"));
}

TEST_F(ShardctlVerify, HoldsTheListOfRejectsAgainstTheirNumber) {
  const Made made = make("ds");
  const fs::path file = made.folder / kRejectsFile;
  const std::string whole = read_whole(file);
  const auto refused = [&](const std::string& content, const char* piece) {
    write_whole(file, content);
    const Ran ran = verify(made.folder);
    EXPECT_EQ(ran.code, 1) << content;
    EXPECT_THAT(ran.out, StartsWith("rejects.csv: "));
    EXPECT_THAT(ran.out, HasSubstr(piece));
  };
  refused(whole + "b,c\n", "lists 2 inputs");
  refused("path,reason\n", "lists 0 inputs");
  refused(whole.substr(0, whole.size() - 3), "cut");
  refused("path,reason\na,b,c\n", "3 fields");
  refused("nonsense", "path,reason");
  fs::remove(file);
  EXPECT_EQ(verify(made.folder).code, 1);
}

// Data sets of earlier versions: dataset.json has no digest of the table.
TEST_F(ShardctlVerify, ComparesTheKeysOfAListOfInputsWithoutADigest) {
  const Made made = make("ds");
  const fs::path file = made.folder / kInputsFile;
  const std::string row = ",10,0123456789abcdef\n";
  std::vector<std::string> rows;
  for (std::uint64_t i = 0; i < 6; ++i) rows.push_back(csv_field(escape_key(raw_key(i))) + row);
  rows.insert(rows.begin() + 3, "\"cat/a,\"\"b\"\".jpg\",,\n");  // the reject
  const auto table = [&](const std::vector<std::string>& of) {
    std::string text = "path,size_bytes,xxh3\n";
    for (const std::string& one : of) text += one;
    return text;
  };
  Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("inputs.csv: this data set has none"));
  write_whole(file, table(rows));
  ran = verify(made.folder);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("the sizes and digests of the inputs cannot be checked"));
  EXPECT_THAT(ran.out, HasSubstr("paths and reasons cannot be checked"));
  EXPECT_EQ(Json::parse(run({"verify", "--json", made.folder.string()}).out).at("tables"),
            (Json{{kInputsFile, "form"}, {kRejectsFile, "form"}}));
  const auto refused = [&](const std::string& content, const char* piece) {
    write_whole(file, content);
    const Ran found = verify(made.folder);
    EXPECT_EQ(found.code, 1) << content;
    EXPECT_THAT(found.out, StartsWith("inputs.csv: "));
    EXPECT_THAT(found.out, HasSubstr(piece));
  };
  std::vector<std::string> other = rows;
  std::swap(other[1], other[2]);
  refused(table(other), "row 2: ");
  other = rows;
  other.erase(other.begin() + 4);
  refused(table(other), "is not the next sample of the shards");
  other = rows;
  other.pop_back();
  refused(table(other), "ends before the sample \"d\xC3\xB6g/5.jpg\"");
  other = rows;
  other.push_back("more.jpg" + row);
  refused(table(other), "there are no more");
  refused(table(rows).substr(0, table(rows).size() - 4), "row 7: is not a path, a size and a digest");
  refused("path,size_bytes\n", "row 1: ");
  refused("", "ends before the sample");
}

TEST_F(ShardctlVerify, FindsLabelsWithoutAClass) {
  Made made = make("ds");
  made.info.classes.pop_back();
  publish_file(made.folder / kDatasetFile, serialize_dataset(made.info));
  const Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("has the label 1, dataset.json has 1 classes"));
}

TEST_F(ShardctlVerify, ChecksWhatAnIncompleteConversionPublished) {
  const Made made = make("ds");
  fs::remove(made.folder / kDatasetFile);
  write_whole(made.folder / kPlanFile, "{}");
  Ran ran = verify(made.folder);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.out, HasSubstr("2 shards, 6 samples"));
  EXPECT_THAT(ran.err, HasSubstr("run the same shardify command again"));
  flip(made.folder / "shard-00000.safetensors", 20);
  EXPECT_EQ(verify(made.folder).code, 1);
}

TEST_F(ShardctlVerify, GivesTheSameReportForAnyNumberOfThreads) {
  const Made made = make("ds");
  const std::size_t size = read_whole(made.folder / "shard-00000.safetensors").size();
  flip(made.folder / "shard-00000.safetensors", size - 1);
  flip(made.folder / "shard-00001.safetensors", 30);
  const auto failures = [&](const char* jobs) {
    return Json::parse(run({"verify", "--json", "--jobs", jobs, made.folder.string()}).out).at("failures");
  };
  EXPECT_EQ(failures("1").size(), 2U);
  EXPECT_EQ(failures("1"), failures("8"));
}

TEST_F(ShardctlVerify, DoesNotCallSomebodyElsesSafetensorsFileCorrupt) {
  const std::string header = R"({"weights":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string file{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  write_whole(path("model.safetensors"), file + header + std::string(8, 'x'));
  const Ran ran = verify(path("model.safetensors"));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("a safetensors file, but not a shard"));
  // In a data set it stands in the place of a shard: that is damage.
  const Made made = make("ds");
  fs::copy_file(path("model.safetensors"), made.folder / "shard-00000.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(verify(made.folder).code, 1);
}

TEST_F(ShardctlVerify, IsAnErrorForWhatIsNoDataSet) {
  EXPECT_EQ(verify(path("nowhere")).code, 2);
  fs::create_directory(path("empty"));
  EXPECT_EQ(verify(path("empty")).code, 2);
  EXPECT_EQ(run({"verify"}).code, 2);
}

}  // namespace
}  // namespace shard::testing
