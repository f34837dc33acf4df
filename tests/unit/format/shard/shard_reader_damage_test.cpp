// No damage survives: every byte of a small shard flipped, every length (both every stride()-th, see
// support/rounds.hpp), and files that change under the reader.
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "support/expect_error.hpp"
#include "support/format/golden_cases.hpp"
#include "support/format/shard_samples.hpp"
#include "support/memory_file.hpp"
#include "support/rounds.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

constexpr std::byte kMasks[] = {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}};

// Whether opening or verifying the file reports damage, by the right code and naming the file.
bool damage_found(const std::filesystem::path& path) {
  try {
    verify_shard(ShardReader::open(path));
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported) << error.what();
    EXPECT_NE(std::string(error.what()).find(path.native()), std::string::npos) << error.what();
    return true;
  }
  return false;
}

class Damage : public ::testing::TestWithParam<std::pair<CodecSpec, bool>> {
 protected:
  void SetUp() override {
    ShardWriterOptions options = small_options(DType::u8, Layout::nchw, GetParam().first);
    options.spec.height = 3;
    options.columns = {{"labels", DType::i64, {}}, {"mask", DType::u8, {3}}};
    if (GetParam().second) {
      options.columns.push_back({"caption", DType::u8, {}, ColumnKind::text});
      options.columns.push_back({"boxes", DType::f16, {4}, ColumnKind::ragged});
    }
    const TempDir dir;
    write_shard(dir.path() / "good", options, 3);
    bytes_ = file_bytes(dir.path() / "good");
    file_.assign(bytes_);
    ASSERT_FALSE(damage_found(file_.path())) << "the undamaged shard must pass";
  }

  std::vector<std::byte> bytes_;
  MemoryFile file_;
};

TEST_P(Damage, NoFlippedByteSurvives) {
  std::size_t survivors = 0;
  for (std::size_t i = 0; i < bytes_.size(); i += stride()) {
    for (std::byte mask : kMasks) {
      const std::byte flipped = bytes_[i] ^ mask;
      file_.write(i, {&flipped, 1});
      if (!damage_found(file_.path())) ++survivors;
    }
    file_.write(i, {&bytes_[i], 1});
  }
  EXPECT_EQ(survivors, 0U) << "of " << bytes_.size() * std::size(kMasks);
  EXPECT_FALSE(damage_found(file_.path())) << "all flips were taken back";
}

TEST_P(Damage, NoCutSurvives) {
  std::size_t survivors = 0;
  for (std::size_t cut = 1; cut <= bytes_.size(); cut += stride()) {
    file_.resize(bytes_.size() - cut);
    if (!damage_found(file_.path())) ++survivors;
  }
  EXPECT_EQ(survivors, 0U) << "of " << bytes_.size();
}

TEST_P(Damage, NoExtensionSurvives) {
  for (std::size_t more : {1U, 8U, 4096U}) {
    for (std::byte fill : {std::byte{0}, std::byte{' '}, std::byte{0xff}}) {
      std::vector<std::byte> longer = bytes_;
      longer.insert(longer.end(), more, fill);
      file_.assign(longer);
      EXPECT_TRUE(damage_found(file_.path())) << more << " bytes more";
    }
  }
}

// Every golden case of version 2's samples: dtypes, channels, ranks.
class WideDamage : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(WideDamage, NoFlippedByteSurvives) {
  const TempDir dir;
  write_shard(dir.path() / "good", GetParam().options, 2);
  const std::vector<std::byte> bytes = file_bytes(dir.path() / "good");
  MemoryFile file;
  file.assign(bytes);
  ASSERT_FALSE(damage_found(file.path())) << "the undamaged shard must pass";
  std::size_t survivors = 0;
  for (std::size_t i = 0; i < bytes.size(); i += stride()) {
    const std::byte flipped = bytes[i] ^ std::byte{0x01};
    file.write(i, {&flipped, 1});
    if (!damage_found(file.path())) ++survivors;
    file.write(i, {&bytes[i], 1});
  }
  EXPECT_EQ(survivors, 0U) << "of " << bytes.size();
}

std::string name_of(const ::testing::TestParamInfo<GoldenCase>& wide) {
  std::string name = wide.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Samples, WideDamage, ::testing::ValuesIn(wide_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Free, WideDamage, ::testing::ValuesIn(free_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(ImageFields, WideDamage, ::testing::ValuesIn(image_field_cases()), name_of);

INSTANTIATE_TEST_SUITE_P(Codecs, Damage,
                         ::testing::Values(std::pair(CodecSpec{CodecSpec::Kind::none, 3}, false),
                                           std::pair(CodecSpec{CodecSpec::Kind::zstd, 3}, false),
                                           std::pair(CodecSpec{CodecSpec::Kind::packed, 3}, false),
                                           std::pair(CodecSpec{CodecSpec::Kind::none, 3}, true)),
                         [](const auto& param) {
                           const std::string name = to_string(param.param.first);
                           return name.substr(0, name.find(':')) + (param.param.second ? "Fields" : "");
                         });

TEST(TruncatedUnderTheReader, ReadingIsAnErrorNamingTheShard) {
  for (const CodecSpec& codec : {CodecSpec{CodecSpec::Kind::none, 3}, CodecSpec{CodecSpec::Kind::zstd, 3},
                                 CodecSpec{CodecSpec::Kind::packed, 3}}) {
    const TempDir dir;
    const ShardWriterOptions options = small_options(DType::u8, Layout::nchw, codec);
    write_shard(dir.path() / "shrunk", options, 3);
    const ShardReader reader = ShardReader::open(dir.path() / "shrunk");
    std::vector<std::byte> out(static_cast<std::size_t>(options.spec.size_bytes()));
    // 4,000 bytes: the rest of the first page reads as zeros.
    for (const std::uint64_t size : {std::uint64_t{4100}, std::uint64_t{4000}, std::uint64_t{0}}) {
      std::filesystem::resize_file(dir.path() / "shrunk", size);
      const std::string now = "shrunk\": the file changed while it was in use: " + std::to_string(size);
      EXPECT_SHARD_ERROR(reader.images().read(1, out), ErrorCode::corrupt, now);
      EXPECT_SHARD_ERROR(reader.verify_sample(1, out), ErrorCode::corrupt, now);
      EXPECT_SHARD_ERROR(reader.images().read_frame(1, out), ErrorCode::corrupt, now);
      EXPECT_SHARD_ERROR(reader.verify_head(), ErrorCode::corrupt, now);
      EXPECT_SHARD_ERROR(reader.check_unchanged(), ErrorCode::corrupt, now);
      out.resize(static_cast<std::size_t>(options.spec.size_bytes()));
    }
    // Nothing of it is there: what is copied from the mapping is an error, not a signal.
    std::array<std::byte, 8> row{};
    EXPECT_SHARD_ERROR(reader.key(1), ErrorCode::corrupt, "0 bytes now");
    EXPECT_SHARD_ERROR(reader.images().checksum(1), ErrorCode::corrupt, "0 bytes now");
    EXPECT_SHARD_ERROR(reader.label(1), ErrorCode::corrupt, "0 bytes now");
    EXPECT_SHARD_ERROR(reader.read_rows(reader.columns().at("labels"), 1, row), ErrorCode::corrupt,
                       "0 bytes now");
  }
}

TEST(ReplacedUnderTheReader, IsAnErrorThatSaysSoAndTheOldBytesStay) {
  const TempDir dir;
  const ShardWriterOptions options = small_options();
  const auto path = dir.path() / "shard";
  write_shard(path, options, 3);
  const ShardReader reader = ShardReader::open(path);
  std::vector<std::byte> out(static_cast<std::size_t>(options.spec.size_bytes()));

  const std::vector<std::byte> bytes = file_bytes(path);
  write_bytes(dir.path() / "other", bytes);
  std::filesystem::rename(dir.path() / "other", path);
  EXPECT_SHARD_ERROR(reader.check_unchanged(), ErrorCode::corrupt, "was replaced by another one");
  EXPECT_SHARD_ERROR(reader.images().read(1, out), ErrorCode::corrupt, "was replaced by another one");
  EXPECT_EQ(reader.key(1), sample_key(1));
  EXPECT_EQ(reader.label(1), 1);

  std::filesystem::remove(path);
  EXPECT_SHARD_ERROR(reader.check_unchanged(), ErrorCode::corrupt, "shard\": the file is gone");
  EXPECT_SHARD_ERROR(reader.images().read(1, out), ErrorCode::corrupt, "the file is gone");
}

TEST(WrittenToUnderTheReader, OffsetsAreCheckedAgainWhenTheyAreUsed) {
  const TempDir dir;
  const ShardWriterOptions options =
      small_options(DType::u8, Layout::nchw, CodecSpec{CodecSpec::Kind::zstd, 3});
  const auto path = dir.path() / "shard";
  write_shard(path, options, 3);
  const ShardReader reader = ShardReader::open(path);
  const SafetensorsHeader& head = reader.header().container;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (const char* table : {"key_offsets", "frame_offsets"}) {
    file.seekp(static_cast<std::streamoff>(head.data_begin + head.find(table)->begin + 8));
    file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  }
  file.flush();
  EXPECT_SHARD_ERROR(reader.key(0), ErrorCode::corrupt, "another program writes to the file");
  EXPECT_SHARD_ERROR(reader.key(1), ErrorCode::corrupt, "key_offsets[1]");
  EXPECT_SHARD_ERROR(reader.images().frame(1), ErrorCode::corrupt, "frame_offsets[1]");
  EXPECT_SHARD_ERROR(reader.verify_head(), ErrorCode::corrupt, "bytes before the images have changed");
  EXPECT_EQ(reader.label(2), 2);
}

// Also the digits of the digest itself, which the digest does not cover.
TEST(WrittenToUnderTheReader, EveryByteOfTheHeadIsComparedAgain) {
  const TempDir dir;
  const auto path = dir.path() / "shard";
  write_shard(path, small_options(), 3);
  const ShardReader reader = ShardReader::open(path);
  const std::vector<std::byte> bytes = file_bytes(path);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (std::size_t at = 0; at < reader.header().images_begin; ++at) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(bytes[at] ^ std::byte{1})).flush();
    EXPECT_SHARD_ERROR(reader.verify_head(), ErrorCode::corrupt, "shard");
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(bytes[at])).flush();
  }
  EXPECT_NO_THROW(reader.verify_head());
}

}  // namespace
}  // namespace shard
