// shardctl duplicates, run as a user does.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/programs/shardctl_fixture.hpp"

namespace shard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class Duplicates : public Shardctl {
 protected:
  // A data set whose samples have the pixels of sample() of these indices, and the labels index % 2 unless
  // stated.
  std::string make_of(const std::string& name, const std::vector<std::uint64_t>& pixels,
                      DType dtype = DType::u8, CodecSpec codec = {},
                      const std::vector<int>& labels = {}) const {
    DatasetInfo info = make(name + ".base", dtype, Layout::nhwc).info;
    info.codec = codec;
    info.shards.clear();
    info.inputs = pixels.size();
    info.rejects = 0;
    std::filesystem::create_directory(path(name));
    const std::size_t half = pixels.size() / 2;
    for (std::size_t shard = 0; shard < 2; ++shard) {
      const std::size_t begin = shard == 0 ? 0 : half;
      const std::size_t end = shard == 0 ? half : pixels.size();
      ShardWriter writer =
          ShardWriter::create(path(name) / ("shard-0000" + std::to_string(shard) + ".safetensors"),
                              end - begin, ShardWriterOptions{info});
      for (std::size_t i = begin; i < end; ++i) {
        std::vector<std::byte> label(8);
        label[0] =
            static_cast<std::byte>(labels.empty() ? pixels[i] % 2 : static_cast<std::uint64_t>(labels[i]));
        writer.put(i - begin, name + "/" + std::to_string(i), label, sample(info, pixels[i]));
      }
      info.shards.push_back(writer.publish());
    }
    publish_file(path(name) / kDatasetFile, serialize_dataset(info));
    return path(name).string();
  }
};

TEST_F(Duplicates, WithoutAnyItSaysSoAndSucceeds) {
  const Ran ran = run({"duplicates", make_of("a", {0, 1, 2, 3})});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "no duplicates among 4 samples\n");
}

TEST_F(Duplicates, OfOneSetAreListedWithTheirKeys) {
  const std::string a = make_of("a", {5, 1, 2, 5, 7, 2, 5});
  const Ran ran = run({"duplicates", a});
  EXPECT_EQ(ran.code, 1) << ran.err;
  for (const char* piece : {"a/0", "a/3", "a/6", "a/2", "a/5", "5 samples in 2 groups, 3 too many\n"})
    EXPECT_THAT(ran.out, HasSubstr(piece));
  EXPECT_THAT(ran.out, Not(HasSubstr("a/1")));
  EXPECT_THAT(ran.out, Not(HasSubstr("labels differ")));
}

TEST_F(Duplicates, OfTwoSetsAreFoundWhateverTheCodecs) {
  const std::string a = make_of("a", {0, 1, 2, 3});
  const std::string b = make_of("b", {8, 2, 9, 0}, DType::u8, {CodecSpec::Kind::zstd, 3});
  const std::string c = make_of("c", {11, 3, 12, 13}, DType::u8, {CodecSpec::Kind::packed, 3});
  const Ran ran = run({"duplicates", "--json", a, b, c});
  ASSERT_EQ(ran.code, 1) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("groups_across"), 3);
  EXPECT_EQ(json.at("verified"), true);
  ASSERT_EQ(json.at("groups").size(), 3U);
  const Json& group = json.at("groups").at(1);
  EXPECT_EQ(group.at("across"), true);
  EXPECT_EQ(group.at("samples").at(0).at("key"), "a/2");
  EXPECT_EQ(group.at("samples").at(1).at("set"), 1);
  EXPECT_EQ(group.at("samples").at(1).at("index"), 1);
  EXPECT_EQ(json.at("sets").at(2).at("path"), c);
}

TEST_F(Duplicates, AcrossLeavesOutThoseOfOneSet) {
  const std::string a = make_of("a", {0, 0, 2, 3});
  const std::string b = make_of("b", {8, 3, 8, 9});
  Ran ran = run({"duplicates", "--across", a, b});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 samples in 1 group, 1 too many; across data sets: 1 group\n"));
  EXPECT_EQ(run({"duplicates", "--across", a, make_of("c", {20, 21})}).code, 0);
  ran = run({"duplicates", "--across", a});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--across"));
}

TEST_F(Duplicates, OfOtherLabelsAreMarked) {
  const std::string a = make_of("a", {4, 1, 4, 6, 6, 9}, DType::u8, {}, {0, 1, 1, 0, 0, 0});
  const Ran ran = run({"duplicates", a});
  EXPECT_THAT(ran.out, HasSubstr("labels differ"));
  EXPECT_THAT(ran.out, HasSubstr("with different labels: 1 group\n"));
}

TEST_F(Duplicates, CsvListsAllOfThem) {
  const std::string a = make_of("a", {4, 1, 4, 4}, DType::u8, {}, {0, 1, 1, 0});
  const std::string file = path("duplicates.csv").string();
  EXPECT_EQ(run({"duplicates", a, "--csv", file}).code, 1);
  EXPECT_EQ(read_whole(file), "group,set,index,label,key,distance,labels_differ\n0," + a +
                                  ",0,cat,a/0,0,yes\n0," + a + ",2,d\xC3\xB6g,a/2,0,yes\n0," + a +
                                  ",3,cat,a/3,0,yes\n");
}

TEST_F(Duplicates, TheTableIsBoundedAndJsonIsNot) {
  std::vector<std::uint64_t> pixels;
  for (std::uint64_t i = 0; i < 100; ++i) pixels.push_back(i < 60 ? i / 2 : 100);
  const std::string a = make_of("a", pixels);
  const std::string table = run({"duplicates", a}).out;
  EXPECT_THAT(table, HasSubstr("and 11 more groups (--json and --csv list all)\n100 samples in 31 groups"));
  EXPECT_EQ(Json::parse(run({"duplicates", "--json", a}).out).at("groups").size(), 31U);
  const std::string one = make_of("one", std::vector<std::uint64_t>(30, 7));
  EXPECT_THAT(run({"duplicates", one}).out, HasSubstr("and 20 more\n"));
}

TEST_F(Duplicates, SetsOfOtherSamplesAreRefusedByName) {
  const std::string a = make_of("a", {0, 1});
  const std::string b = make_of("b", {0, 1}, DType::f16);
  const Ran ran = run({"duplicates", a, b});
  EXPECT_EQ(ran.code, 2);
  for (const std::string& piece : {a, b, std::string("u8 nhwc [6, 10, 3]"), std::string("f16 nhwc"),
                                   std::string("mean 0.485,0.456,0.406"), std::string("--near 0")})
    EXPECT_THAT(ran.err, HasSubstr(piece));
}

TEST_F(Duplicates, ASetNamedTwiceIsRefused) {
  const std::string a = make_of("a", {0, 1, 2, 3});
  ASSERT_EQ(run({"split", a, "--fractions", "0.5,0.5"}).code, 0);
  for (const std::string& other : {a + "/.", a + "#train"}) {
    const Ran ran = run({"duplicates", a, other});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("are the same data set, or one is a part of the other"));
  }
}

TEST_F(Duplicates, OfPartsOfASetAreThoseInThem) {
  std::vector<std::uint64_t> pixels;
  for (std::uint64_t i = 0; i < 80; ++i) pixels.push_back(i / 2);
  const std::string a = make_of("a", pixels);
  ASSERT_EQ(run({"split", a, "--fractions", "0.5,0.5"}).code, 0);
  const auto groups = [&](const std::vector<std::string>& paths) {
    std::vector<std::string> arguments{"duplicates", "--json"};
    arguments.insert(arguments.end(), paths.begin(), paths.end());
    return Json::parse(run(arguments).out).at("groups").size();
  };
  EXPECT_EQ(groups({a + "#train", a + "#val"}), 40U);
  EXPECT_LT(groups({a + "#train"}) + groups({a + "#val"}), 40U);
  EXPECT_GT(groups({a + "#train"}), 0U);
}

TEST_F(Duplicates, NearOnesAreFoundInSetsOfOtherSamples) {
  const std::string a = make_of("a", {0, 1, 2, 3});
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    const std::string b = make_of("b" + std::to_string(static_cast<int>(dtype)), {2, 9, 1, 30}, dtype);
    const Ran ran = run({"duplicates", "--json", "--near", "0", "--across", a, b});
    ASSERT_EQ(ran.code, 1) << ran.err;
    const Json json = Json::parse(ran.out);
    EXPECT_EQ(json.at("near"), 0);
    EXPECT_EQ(json.at("verified"), false);
    std::set<std::string> keys;
    for (const Json& group : json.at("groups"))
      for (const Json& sample : group.at("samples")) keys.insert(sample.at("key").get<std::string>());
    EXPECT_THAT(keys, ::testing::IsSupersetOf({std::string("a/1"), std::string("a/2")}));
  }
}

TEST_F(Duplicates, NearHasABound) {
  const Ran ran = run({"duplicates", "--near", "13", make_of("a", {0, 1})});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--near"));
}

TEST_F(Duplicates, ADamagedSampleIsNamedAndTheOthersAreCompared) {
  const std::string a = make_of("a", {5, 1, 5, 5, 7, 5});
  const auto file = std::filesystem::path(a) / "shard-00000.safetensors";
  std::string bytes = read_whole(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);  // of the third sample
  write_whole(file, bytes);
  Ran ran = run({"duplicates", a});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("3 samples in 1 group"));
  EXPECT_THAT(ran.err, HasSubstr("1 damaged sample"));
  EXPECT_THAT(ran.err, HasSubstr("a/2"));
  ran = run({"duplicates", "--no-verify", a});
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("4 samples in 1 group"));
}

TEST_F(Duplicates, ThreadsDoNotChangeTheResult) {
  std::vector<std::uint64_t> pixels;
  for (std::uint64_t i = 0; i < 200; ++i) pixels.push_back(i * i % 23);
  const std::string a = make_of("a", pixels);
  for (const char* near : {"", "--near=2"}) {
    std::vector<std::string> arguments{"duplicates", "--json", a};
    if (*near != '\0') arguments.emplace_back(near);
    std::vector<std::string> one = arguments;
    one.insert(one.end(), {"--jobs", "1"});
    arguments.insert(arguments.end(), {"--jobs", "5"});
    EXPECT_EQ(run(one).out, run(arguments).out);
  }
}

}  // namespace
}  // namespace shard::testing
