// shardctl info, ls, show, export, stats and compare, run as a user does. verify: shardctl_verify_test.cpp.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "shard/convert/convert.hpp"
#include "shard/image/preprocess.hpp"
#include "support/programs/shardctl_fixture.hpp"

namespace shard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

TEST_F(Shardctl, InfoDescribesADataSet) {
  const Made made = make("ds");
  const Ran ran = run({"info", made.folder.string()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* piece :
       {"a complete data set", "f16 nchw [3, 6, 10], 360 bytes", "1 of 7 inputs", "0123456789abcdef",
        "d\xC3\xB6g", "shard-00001.safetensors", "pipeline filter", "np.memmap("}) {
    EXPECT_THAT(ran.out, HasSubstr(piece));
  }
}

TEST_F(Shardctl, InfoJsonHasTheOffsetsAtWhichTheBytesLie) {
  const Made made = make("ds", DType::f32);
  const Ran ran = run({"info", "--json", made.folder.string()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("state"), "complete");
  EXPECT_EQ(json.at("samples"), 6);
  EXPECT_EQ(json.at("normalization").at("mean").at(0).dump(), "0.485");
  EXPECT_EQ(json.at("classes").at(1), Json({{"id", 1}, {"name", "d\xC3\xB6g"}, {"samples", 3}}));
  for (const Json& tensor : json.at("shards").at(1).at("tensors")) {
    if (tensor.at("name") != "images") continue;
    EXPECT_EQ(tensor.at("shape"), Json({3, 3, 6, 10}));
    const std::string file = read_whole(made.folder / "shard-00001.safetensors");
    const auto expected = sample(made.info, 3);
    EXPECT_EQ(
        std::memcmp(file.data() + tensor.at("offset").get<std::size_t>(), expected.data(), expected.size()),
        0);
    return;
  }
  FAIL() << "no tensor named images";
}

TEST_F(Shardctl, InfoReadsAShardAndAnySafetensorsFile) {
  const Made made = make("ds");
  EXPECT_THAT(run({"info", (made.folder / "shard-00000.safetensors").string()}).out, HasSubstr(": a shard"));
  const std::string header = R"({"weights":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string file{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  write_whole(path("other.safetensors"), file + header + std::string(8, 'x'));
  const Ran ran = run({"info", path("other.safetensors").string()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("not a shard"));
  EXPECT_THAT(ran.out, HasSubstr("weights"));
}

TEST_F(Shardctl, ListsTensorsOfForeignFilesAlsoOfDtypesThatItDoesNotHandle) {
  const std::string header =
      "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,4],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[8,10]},"
      "\"c\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[10,18]}}";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  write_whole(path("foreign.safetensors"), file + header + std::string(18, 'x'));
  const std::string name = path("foreign.safetensors").string();
  for (const char* command : {"info", "ls"}) {
    const Ran ran = run({command, name});
    EXPECT_EQ(ran.code, 0) << ran.err;
    for (const char* part : {"F8_E4M3", "F4", "C64", "[2, 4]"}) EXPECT_THAT(ran.out, HasSubstr(part));
  }
  EXPECT_THAT(run({"ls", "--csv", name}).out, HasSubstr("b,F4,[4],2\n"));
  EXPECT_THAT(run({"ls", "--json", name}).out, HasSubstr("\"dtype\": \"C64\""));
}

TEST_F(Shardctl, InfoRefusesAMalformedFileNamingTheRule) {
  const std::string header = R"({"weights":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})";
  std::string file{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  write_whole(path("bad.safetensors"), file + header + std::string(8, 'x'));
  const Ran ran = run({"info", path("bad.safetensors").string()});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, StartsWith("shardctl: "));
  EXPECT_THAT(ran.err, HasSubstr("bad.safetensors"));
  EXPECT_THAT(ran.err, HasSubstr("weights"));
  write_whole(path("empty.safetensors"), "");
  EXPECT_EQ(run({"info", path("empty.safetensors").string()}).code, 2);
}

TEST_F(Shardctl, InfoTellsIncompleteEmptyForeignAndMissingApart) {
  const Made made = make("ds");
  std::filesystem::rename(made.folder / kDatasetFile, made.folder / kPlanFile);
  const Ran incomplete = run({"info", made.folder.string()});
  EXPECT_EQ(incomplete.code, 0);
  EXPECT_THAT(incomplete.out, HasSubstr("incomplete conversion: 2 shards published, 6 samples"));
  std::filesystem::create_directory(path("empty"));
  EXPECT_THAT(run({"info", path("empty").string()}).err, HasSubstr("an empty folder"));
  std::filesystem::create_directory(path("foreign"));
  write_whole(path("foreign") / "note.txt", "x");
  EXPECT_THAT(run({"info", path("foreign").string()}).err, HasSubstr("not a data set"));
  const Ran missing = run({"info", path("nowhere").string()});
  EXPECT_THAT(missing.err, HasSubstr("no such file"));
  EXPECT_EQ(missing.code, 2);
}

TEST_F(Shardctl, LsKeepsNastyNamesOnOneLineEach) {
  const Made made = make("ds");
  const Ran ran = run({"ls", made.folder.string()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("0  cat   cat/new\\x0aline, \"quoted\".jpg\n"));
  EXPECT_THAT(ran.out, HasSubstr("d\xC3\xB6g/\\xff\\xfeinvalid.jpg\n"));
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 6);
}

TEST_F(Shardctl, LsPrintsCsvAndJsonThatReadBack) {
  const Made made = make("ds");
  const Ran csv = run({"ls", "--csv", made.folder.string()});
  EXPECT_THAT(csv.out,
              StartsWith("index,label,class,key\n0,0,cat,\"cat/new\\x0aline, \"\"quoted\"\".jpg\"\n"));
  const Json json = Json::parse(run({"ls", "--json", made.folder.string()}).out);
  ASSERT_EQ(json.size(), 6U);
  EXPECT_EQ(json[1],
            Json({{"index", 1}, {"label", 1}, {"class", "d\xC3\xB6g"}, {"key", escape_key(raw_key(1))}}));
  EXPECT_EQ(run({"ls", "--json", "--csv", made.folder.string()}).code, 2);
}

TEST_F(Shardctl, LsOfAShardNumbersItsSamplesFrom0) {
  const Made made = make("ds");
  const Ran ran = run({"ls", (made.folder / "shard-00001.safetensors").string()});
  EXPECT_THAT(ran.out, StartsWith("0  1  d\xC3\xB6g/3.jpg\n"));  // a shard alone knows no class names
}

class ShardctlShow : public Shardctl,
                     public ::testing::WithParamInterface<std::tuple<DType, Layout, CodecSpec::Kind>> {};

TEST_P(ShardctlShow, WritesThePixelsThatTheSamplesWereMadeFrom) {
  const auto [dtype, layout, codec] = GetParam();
  const Made made = make("ds", dtype, layout, {codec, 3});
  const std::string output = path("sheet.png").string();
  const Ran ran = run({"show", made.folder.string(), "1", "4", "-o", output, "--columns", "2"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string png = read_whole(output);
  image::Decoder decoder;
  const image::RgbView view = decoder.decode(std::as_bytes(std::span(png.data(), png.size())), {});
  const std::uint32_t cell = (view.width - 4) / 2;
  bool captioned = false;
  for (const std::uint32_t tile : {0U, 1U}) {
    for (std::uint32_t y = 0; y < kHeight; ++y) {
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        for (std::uint32_t c = 0; c < 3; ++c) {
          const std::uint8_t shown = view.data[(4 + y) * view.stride_bytes + (4 + tile * cell + x) * 3 + c];
          ASSERT_EQ(int{shown}, int{pixel(tile == 0 ? 1 : 4, y, x, c)})
              << tile << " " << y << " " << x << " " << c;
        }
      }
    }
    for (std::uint32_t x = 0; x < cell; ++x)
      captioned |= view.data[(kHeight + 10) * view.stride_bytes + (4 + x) * 3] == 0;
  }
  EXPECT_TRUE(captioned);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShardctlShow,
                         ::testing::Values(std::tuple{DType::u8, Layout::nhwc, CodecSpec::Kind::none},
                                           std::tuple{DType::f16, Layout::nchw, CodecSpec::Kind::none},
                                           std::tuple{DType::bf16, Layout::nchw, CodecSpec::Kind::none},
                                           std::tuple{DType::f32, Layout::nhwc, CodecSpec::Kind::none},
                                           std::tuple{DType::f16, Layout::nchw, CodecSpec::Kind::zstd},
                                           std::tuple{DType::u8, Layout::nhwc, CodecSpec::Kind::packed},
                                           std::tuple{DType::bf16, Layout::nchw, CodecSpec::Kind::packed}));

TEST_F(Shardctl, ShowDrawsTheSameRandomSamplesForTheSameSeed) {
  const Made made = make("ds");
  const auto sheet = [&](const char* seed) {
    const std::string output = path("sheet.png").string();
    EXPECT_EQ(run({"show", made.folder.string(), "--count", "3", "--seed", seed, "-o", output}).code, 0);
    return read_whole(output);
  };
  EXPECT_EQ(sheet("1"), sheet("1"));
  EXPECT_NE(sheet("1"), sheet("2"));
}

TEST_F(Shardctl, ShowDrawsTwelveOrAllSamplesByDefault) {
  const Made made = make("ds");
  const std::string output = path("sheet.png").string();
  EXPECT_THAT(run({"show", made.folder.string(), "-o", output}).out, HasSubstr(": 6 samples, "));
}

TEST_F(Shardctl, ShowTakesRanges) {
  const Made made = make("ds");
  const auto sheet = [&](std::vector<std::string> samples) {
    const std::string output = path("sheet.PNG").string();
    std::vector<std::string> arguments{"show", made.folder.string(), "-o", output};
    arguments.insert(arguments.begin() + 2, samples.begin(), samples.end());
    EXPECT_EQ(run(arguments).code, 0);
    return read_whole(output);
  };
  EXPECT_EQ(sheet({"1..4", "0"}), sheet({"1", "2", "3", "0"}));
  EXPECT_NE(sheet({"1..4"}), sheet({"1..3"}));
}

TEST_F(Shardctl, ShowRefusesSamplesThatDoNotExistAndTwoChoices) {
  const Made made = make("ds");
  const std::string output = path("sheet.png").string();
  const Ran ran = run({"show", made.folder.string(), "6", "-o", output});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("sample 6 does not exist"));
  EXPECT_FALSE(std::filesystem::exists(output));
  EXPECT_THAT(run({"show", made.folder.string(), "0", "--count", "2", "-o", output}).err,
              HasSubstr("either indices or --count"));
  EXPECT_THAT(run({"show", made.folder.string(), "2..7", "-o", output}).err, HasSubstr("there are 6"));
  EXPECT_THAT(run({"show", made.folder.string(), "3..3", "-o", output}).err, HasSubstr("is empty"));
  EXPECT_THAT(run({"show", made.folder.string(), "0..99999999999999999999", "-o", output}).err,
              HasSubstr("is not a selection of samples"));
  EXPECT_THAT(run({"show", made.folder.string(), "cat", "-o", output}).err,
              HasSubstr("\"cat\" is not a selection of samples"));
  EXPECT_FALSE(std::filesystem::exists(output));
  const Ran jpeg = run({"show", made.folder.string(), "0", "-o", path("sheet.jpg").string()});
  EXPECT_EQ(jpeg.code, 2);
  EXPECT_THAT(jpeg.err, HasSubstr("ends in .png"));
  EXPECT_FALSE(std::filesystem::exists(path("sheet.jpg")));
  EXPECT_EQ(run({"show", made.folder.string(), "0", "-o", path("no/such/folder.png").string()}).code, 2);
}

// The data of a .npy file, after its header is checked.
std::string npy_data(const std::filesystem::path& file, const std::string& description) {
  const std::string bytes = read_whole(file);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t begin =
      10 + static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ(begin % 64, 0U);
  EXPECT_EQ(bytes[begin - 1], '\n');
  EXPECT_THAT(bytes.substr(10, begin - 10), StartsWith(description));
  return bytes.substr(begin);
}

TEST_F(Shardctl, ExportWritesWhatNumpyReads) {
  const Made made = make("ds", DType::f16, Layout::nchw, {CodecSpec::Kind::zstd, 3});
  const Ran ran = run({"export", made.folder.string(), "--npy", path("npy").string()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string images =
      npy_data(path("npy/images.npy"), "{'descr': '<f2', 'fortran_order': False, 'shape': (6, 3, 6, 10), }");
  std::string expected;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const auto bytes = sample(made.info, i);
    expected.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  EXPECT_TRUE(images == expected);
  const std::string labels =
      npy_data(path("npy/labels.npy"), "{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }");
  ASSERT_EQ(labels.size(), 48U);
  EXPECT_EQ(labels[0], 0);
  EXPECT_EQ(labels[8], 1);
  EXPECT_THAT(read_whole(path("npy/keys.txt")), StartsWith("cat/new\\x0aline, \"quoted\".jpg\n"));
  EXPECT_EQ(read_whole(path("npy/classes.txt")), "cat\nd\xC3\xB6g\n");
}

TEST_F(Shardctl, ExportWidensBfloat16AndSaysSo) {
  const Made made = make("ds", DType::bf16);
  const Ran ran = run({"export", made.folder.string(), "--npy", path("npy").string()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("float32"));
  const std::string images = npy_data(path("npy/images.npy"), "{'descr': '<f4'");
  ASSERT_EQ(images.size(), 6 * 180U * 4);
  float first = 0;
  std::memcpy(&first, images.data(), 4);
  EXPECT_EQ(first, bf16_to_f32(f32_to_bf16(normalized(made.info, pixel(0, 0, 0, 0), 0))));
}

TEST_F(Shardctl, ExportRefusesAFolderThatIsNotEmptyAndLeavesNothingAfterAFailure) {
  const Made made = make("ds");
  const Ran ran = run({"export", made.folder.string(), "--npy", made.folder.string()});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("not empty"));
  // A damaged zstd frame is found while the images are written.
  const Made zstd = make("zstd", DType::f16, Layout::nchw, {CodecSpec::Kind::zstd, 3});
  std::string file = read_whole(zstd.folder / "shard-00001.safetensors");
  file[file.size() - 8] = static_cast<char>(file[file.size() - 8] ^ 0x40);
  file[file.size() - 300] = static_cast<char>(file[file.size() - 300] ^ 0x40);
  const std::size_t at = file.rfind("\x28\xB5\x2F\xFD");  // a frame's magic number
  ASSERT_NE(at, std::string::npos);
  file[at] = 0;
  write_whole(zstd.folder / "shard-00001.safetensors", file);
  EXPECT_EQ(run({"export", zstd.folder.string(), "--npy", path("npy").string()}).code, 1);
  EXPECT_TRUE(std::filesystem::is_empty(path("npy")));
}

// Damages one byte of sample `index` of the set that make() makes with codec none: 3 samples a shard, 540
// bytes each as u8.
void damage_sample(const std::filesystem::path& folder, std::uint64_t index) {
  const auto file = folder / ("shard-0000" + std::to_string(index / 3) + ".safetensors");
  std::string bytes = read_whole(file);
  const ShardReader reader = ShardReader::open(file);
  const std::size_t at = reader.header().images_begin + index % 3 * reader.header().spec.size_bytes() + 17;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_whole(file, bytes);
}

TEST_F(Shardctl, ReadingCommandsNameADamagedSampleAndReturn1) {
  const Made made = make("ds", DType::u8, Layout::nhwc);
  const std::string folder = made.folder.string();
  const std::string sheet = path("sheet.png").string();
  damage_sample(made.folder, 4);
  damage_sample(made.folder, 5);

  const Ran exported = run({"export", folder, "--npy", path("npy").string()});
  EXPECT_EQ(exported.code, 1);
  EXPECT_THAT(exported.err, HasSubstr("shard-00001.safetensors\": sample 1 (\"cat/4.jpg\")"));
  EXPECT_THAT(exported.err, HasSubstr("sample 2 (\"d\xC3\xB6g/5.jpg\")"));
  EXPECT_THAT(exported.err, HasSubstr("2 damaged samples; nothing was written"));
  EXPECT_TRUE(std::filesystem::is_empty(path("npy")));

  const Ran shown = run({"show", folder, "0", "4", "-o", sheet});
  EXPECT_EQ(shown.code, 1);
  EXPECT_THAT(shown.err, HasSubstr("sample 1 (\"cat/4.jpg\")"));
  EXPECT_FALSE(std::filesystem::exists(sheet));
  EXPECT_EQ(run({"show", folder, "0..4", "-o", sheet}).code, 0);  // those that are whole
  EXPECT_EQ(run({"show", folder, "4", "-o", sheet, "--no-verify"}).code, 0);

  const Ran stats = run({"stats", "--json", folder});
  EXPECT_EQ(stats.code, 1);
  EXPECT_THAT(stats.err, HasSubstr("sample 1 (\"cat/4.jpg\")"));
  EXPECT_EQ(Json::parse(stats.out).at("samples"), 4);
  EXPECT_EQ(Json::parse(stats.out).at("damaged"), 2);
  EXPECT_EQ(run({"repack", folder, path("packed").string(), "--codec", "packed"}).code, 1);
}

TEST_F(Shardctl, ReadingCommandsNameAShardWhoseHeadIsDamaged) {
  const Made made = make("ds");
  const auto file = made.folder / "shard-00001.safetensors";
  std::string bytes = read_whole(file);
  const std::size_t key = bytes.find("cat/4.jpg");
  ASSERT_NE(key, std::string::npos);
  bytes[key] = 'r';
  write_whole(file, bytes);
  const std::string folder = made.folder.string();
  const Ran listed = run({"ls", "--json", folder});
  EXPECT_EQ(listed.code, 1);
  EXPECT_EQ(Json::parse(listed.out).size(), 3U);
  EXPECT_THAT(listed.err, HasSubstr("shard-00001.safetensors"));
  EXPECT_THAT(listed.err, HasSubstr("1 damaged shard;"));
  EXPECT_EQ(run({"export", folder, "--npy", path("npy").string()}).code, 1);
  EXPECT_TRUE(std::filesystem::is_empty(path("npy")));
  EXPECT_EQ(run({"show", folder, "3", "-o", path("sheet.png").string()}).code, 1);
  EXPECT_EQ(run({"show", folder, "2", "-o", path("sheet.png").string()}).code, 0);
  EXPECT_EQ(run({"stats", folder}).code, 1);
}

TEST_F(Shardctl, StatsOfStoredSamplesAreThoseOfThePixels) {
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < 6; ++i) {
    for (std::uint32_t y = 0; y < kHeight; ++y) {
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        const double value = pixel(i, y, x, 1) / 255.0;
        sum += value;
        squares += value * value;
      }
    }
  }
  const double n = 6.0 * kHeight * kWidth;
  for (const DType dtype : {DType::u8, DType::f16, DType::f32}) {
    const Made made = make("ds-" + std::string(to_string(dtype)), dtype);
    const Json json = Json::parse(run({"stats", "--json", made.folder.string()}).out);
    EXPECT_NEAR(json.at("mean").at(1).get<double>(), sum / n, 1e-9);
    EXPECT_NEAR(json.at("std").at(1).get<double>(), std::sqrt(squares / n - sum / n * sum / n), 1e-9);
    EXPECT_EQ(json.at("packed_samples"), 6);
    const Made packed =
        make("packed-" + std::string(to_string(dtype)), dtype, Layout::nchw, {CodecSpec::Kind::packed, 3});
    const ShardReader reader = ShardReader::open(packed.folder / "shard-00000.safetensors");
    double frames = 0;
    for (std::uint64_t i = 0; i < reader.size(); ++i)
      frames += static_cast<double>(reader.images().frame_bytes(i));
    EXPECT_NEAR(json.at("packed_bytes_per_sample").get<double>(), frames / static_cast<double>(reader.size()),
                16);
  }
  EXPECT_THAT(run({"stats", path("ds-u8").string()}).out, HasSubstr("--mean 0."));
  EXPECT_THAT(run({"stats", path("ds-u8").string()}).out, HasSubstr("codec packed: "));
}

// A folder of PNGs, and the data set that the engine makes of it.
class ShardctlCompare : public Shardctl {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) write_image(i, 0);
    convert::Options options;
    options.images = path("images").string();
    options.out = path("out");
    options.preprocess.resize_short = 16;
    options.preprocess.crop = image::Size{16, 16};
    options.jobs = 2;
    ASSERT_TRUE(convert::run(options).complete);
  }
  void write_image(int i, int change) {
    std::vector<std::uint8_t> rgb(40 * 30 * 3);
    for (std::size_t k = 0; k < rgb.size(); ++k)
      rgb[k] = static_cast<std::uint8_t>(k * 7 / 13 + static_cast<std::size_t>(i) * 50);
    for (std::size_t k = 0; k < rgb.size(); ++k)
      rgb[k] = static_cast<std::uint8_t>(std::min(255, rgb[k] / 2 + change));
    const auto png = image::encode_png({rgb.data(), 40, 30, 120});
    std::filesystem::create_directories(path("images/a"));
    write_whole(path("images/a/" + std::to_string(i) + ".png"),
                {reinterpret_cast<const char*>(png.data()), png.size()});
  }
  Ran compare() { return run({"compare", path("out").string(), path("images").string()}); }
};

TEST_F(ShardctlCompare, FindsUnchangedSourcesIdentical) {
  const Ran ran = compare();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("4 samples compared, 4 of them identical"));
}

TEST_F(ShardctlCompare, NamesTheWorstSampleAndTheDifferenceInPixelSteps) {
  write_image(1, 3);
  write_image(2, 5);
  const Ran ran = compare();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("2 of them identical"));
  EXPECT_THAT(ran.out, HasSubstr("at most 5, 2.000000 on average"));
  EXPECT_THAT(ran.out, HasSubstr("worst: sample 2: a/2.png"));
}

TEST_F(ShardctlCompare, NamesDamagedSamplesApartFromDifferentOnes) {
  const auto file = path("out") / "shard-00000.safetensors";
  std::string bytes = read_whole(file);
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);  // the last sample
  write_whole(file, bytes);
  const Ran ran = compare();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("3 samples compared, 3 of them identical"));
  EXPECT_THAT(ran.err, HasSubstr("sample 3 (\"a/3.png\")"));
  EXPECT_THAT(ran.err, HasSubstr("1 damaged sample; they were not compared"));
}

TEST_F(ShardctlCompare, CountsMissingSourcesAndRefusesAFolderWithoutAny) {
  std::filesystem::remove(path("images/a/3.png"));
  const Ran ran = compare();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("1 source cannot be read"));
  std::filesystem::create_directory(path("other"));
  const Ran other = run({"compare", path("out").string(), path("other").string()});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("is it the folder"));
  EXPECT_EQ(run({"compare", path("out").string(), path("nowhere").string()}).code, 2);
}

TEST_F(ShardctlCompare, CountsSourcesThatTheConversionWouldRejectForTheirSize) {
  std::vector<std::uint8_t> rgb(60 * 60 * 3);
  const auto png = image::encode_png({rgb.data(), 60, 60, 180});
  write_whole(path("images/a/1.png"), {reinterpret_cast<const char*>(png.data()), png.size()});
  const Ran ran = run(
      {"compare", path("out").string(), path("images").string(), "--max-pixels", std::to_string(40 * 30)});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("3 samples compared, 3 of them identical"));
  EXPECT_THAT(ran.out, HasSubstr("1 source cannot be read or decoded, first a/1.png: 60 x 60 pixels exceed"));
}

TEST_F(ShardctlCompare, StatsOfImagesCountsWhatCannotBeDecoded) {
  write_whole(path("images/a/broken.jpg"), "no image");
  const Ran ran = run({"stats", path("images").string()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("4 images (short side resized to 256, centre crop 256"));
  EXPECT_THAT(ran.out, HasSubstr("1 file skipped"));
  EXPECT_THAT(ran.out, HasSubstr("bits per value (measured on 4 samples)"));
}

TEST_F(Shardctl, SplitMakesPartsThatEveryCommandTakes) {
  const auto folder = make("set").folder.string();
  const Ran split = run({"split", folder, "--fractions", "0.5,0.5", "--names", "one,two", "--seed", "1"});
  ASSERT_EQ(split.code, 0) << split.err;
  const Ran all = run({"ls", folder, "--csv"});
  std::string both;
  for (const char* name : {"one", "two"}) {
    const std::string part = folder + "#" + name;
    EXPECT_NE(split.out.find(part), std::string::npos) << split.out;
    const Ran ls = run({"ls", part, "--csv"});
    ASSERT_EQ(ls.code, 0) << ls.err;
    both += ls.out.substr(ls.out.find('\n') + 1);
    EXPECT_EQ(run({"verify", part}).code, 0);
    const Ran info = run({"info", part, "--json"});
    const auto samples = static_cast<std::uint64_t>(std::count(ls.out.begin(), ls.out.end(), '\n')) - 1;
    EXPECT_NE(info.out.find("\"samples\": " + std::to_string(Dataset::open(part).size()) + ","),
              std::string::npos);
    EXPECT_NE(info.out.find("\"kind\": \"part\""), std::string::npos);
    EXPECT_GE(samples, Dataset::open(part).size());  // a key may take two lines of CSV
    EXPECT_EQ(run({"show", part, "0", "-o", path(std::string(name) + ".png").string()}).code, 0);
    EXPECT_EQ(run({"stats", part}).code, 0);
    const auto exported = path(std::string("npy-") + name);
    EXPECT_EQ(run({"export", part, "--npy", exported.string()}).code, 0);
    const std::string keys = read_whole(exported / "keys.txt");
    EXPECT_EQ(static_cast<std::uint64_t>(std::count(keys.begin(), keys.end(), '\n')),
              Dataset::open(part).size());
    EXPECT_EQ(run({"repack", part, path("r").string(), "--codec", "none"}).code, 2);
  }
  EXPECT_EQ(Dataset::open(folder + "#one").size() + Dataset::open(folder + "#two").size(), 6U);
  EXPECT_EQ(run({"verify", folder}).code, 0);
  const Ran again =
      run({"split", folder, "--fractions", "0.5,0.5", "--names", "one,two", "--seed", "1", "--json"});
  EXPECT_NE(again.out.find("\"name\": \"one\""), std::string::npos) << again.out;
}

TEST_F(Shardctl, SplitRefusesWhatCannotBeAndWritesNothing) {
  const auto folder = make("set").folder.string();
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    std::vector<std::string> arguments{"split", folder};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  };
  refused({"--fractions", "0.5,0.4"}, "--fractions add up to 0.9");
  refused({"--fractions", "1.5,-0.5"}, "--fractions has 1.5");
  refused({"--fractions", "0.25,0.25,0.25,0.25"}, "0 names for 4 fractions");
  refused({"--fractions", "0.5,0.5", "--names", "a,a"}, "may be given once");
  refused({"--fractions", "0.5,0.5", "--names", "a,../b"}, "cannot be the name of a selection");
  refused({"--fractions", "0.999999,0.000001"}, "none of the 6 samples");
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_NE(entry.path().extension(), ".selection") << entry.path();
}

TEST_F(Shardctl, ReportsAFullOrClosedOutputInsteadOfCrashing) {
  const Made made = make("ds");
  for (const char* command : {"info", "ls", "verify"}) {
    const Ran full = run({command, made.folder.string()}, " >/dev/full");
    EXPECT_EQ(full.code, 2) << command;
    EXPECT_THAT(full.err, HasSubstr("standard output")) << command;
    EXPECT_EQ(run({command, made.folder.string()}, " >&-").code, 2) << command;
  }
}

TEST_F(Shardctl, EndsQuietlyWhenAPipeHasSeenEnough) {
  const Made made = make("ds");
  const auto code = path("code");
  // The reader is gone before anything is written.
  const std::string command =
      "( sleep 0.3; " + shell_quoted(SHARDCTL_PROGRAM) + " ls " + shell_quoted(made.folder.string()) + " 2>" +
      shell_quoted(path("err").string()) + "; echo $? >" + shell_quoted(code.string()) + " ) | true";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_whole(code), "141\n");
  EXPECT_EQ(read_whole(path("err")), "");
}

TEST_F(Shardctl, ExplainsBadUsage) {
  EXPECT_EQ(run({}).code, 2);
  const Ran unknown = run({"nonsense"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no subcommand \"nonsense\"; use one of: info, ls, verify"));
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_EQ(run({"verify", "--help"}).code, 0);
  EXPECT_THAT(run({"--version"}).out, StartsWith("shardctl "));
}

}  // namespace
}  // namespace shard::testing
