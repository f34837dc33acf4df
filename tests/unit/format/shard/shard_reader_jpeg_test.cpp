// Damage of shards with codec jpeg, before and after they are opened.
#include <gtest/gtest.h>

#include <fstream>

#include "base/bytes.hpp"
#include "format/shard/shard_profile.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_shard.hpp"
#include "support/memory_file.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

Bytes small_shard() {
  const TempDir dir;
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, {CodecSpec::Kind::jpeg});
  options.spec = jpeg_spec();
  options.fields = {{"left", FieldRole::image, jpeg_spec(1).sized(9, 8), {}, {CodecSpec::Kind::jpeg}}};
  write_shard(dir.path() / "s", options, 2);
  return file_bytes(dir.path() / "s");
}

bool damage_of_jpegs_found(const MemoryFile& file) {
  try {
    verify_shard(ShardReader::open(file.path()));
    return false;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported) << error.what();
    return true;
  }
}

TEST(ShardReaderJpeg, NoFlippedByteSurvives) {
  const Bytes bytes = small_shard();
  MemoryFile file;
  file.assign(bytes);
  ASSERT_FALSE(damage_of_jpegs_found(file)) << "the undamaged shard must pass";
  std::size_t survivors = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::byte flipped = bytes[i] ^ std::byte{0x01};
    file.write(i, {&flipped, 1});
    if (!damage_of_jpegs_found(file)) ++survivors;
    file.write(i, {&bytes[i], 1});
  }
  EXPECT_EQ(survivors, 0U) << "of " << bytes.size();
}

TEST(ShardReaderJpeg, NoCutSurvives) {
  const Bytes bytes = small_shard();
  MemoryFile file;
  file.assign(bytes);
  std::size_t survivors = 0;
  for (std::size_t size = bytes.size(); size-- > 0;) {
    file.resize(size);
    if (!damage_of_jpegs_found(file)) ++survivors;
  }
  EXPECT_EQ(survivors, 0U) << "of " << bytes.size();
}

TEST(ShardReaderJpeg, RowsAreCheckedAgainWhenTheyAreUsed) {
  const TempDir dir;
  const auto path = dir.path() / "shard";
  write_jpeg_shard(path, 3);
  const ShardReader reader = ShardReader::open(path);
  const StoredImages& images = reader.images();
  const SafetensorsHeader& head = reader.header().container;
  const auto write_row = [&](const jpeg::FrameFile& row) {
    std::vector<std::byte> bytes(kJpegFileBytes);
    store_jpeg_file(bytes, 0, row);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(
        static_cast<std::streamoff>(head.data_begin + head.find("jpeg_files")->begin + kJpegFileBytes));
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))
        .flush();
  };
  const jpeg::FrameFile good = images.frame_spec(1).file;
  std::vector<std::byte> out(images.spec_of(1).size_bytes());
  jpeg::FrameFile row = good;
  row.orientation = 77;
  write_row(row);
  EXPECT_SHARD_ERROR(images.frame_spec(1), ErrorCode::corrupt,
                     "orientation 77; 1 to 8 are valid: the bytes have changed");
  EXPECT_SHARD_ERROR(images.read(1, out), ErrorCode::corrupt, "sample 1 (\"class/photo 1.jpg\")");
  EXPECT_SHARD_ERROR(images.frame(1), ErrorCode::corrupt, "the bytes have changed");
  row = good;
  row.bytes += 4096;
  write_row(row);
  EXPECT_SHARD_ERROR(images.frame_bytes(1), ErrorCode::corrupt, "bytes are not those of its size now");
  row = good;
  row.size = 65500 | 65500U << 16;
  write_row(row);
  EXPECT_SHARD_ERROR(images.read_file(1, out), ErrorCode::corrupt, "are not a sample of");
  EXPECT_NO_THROW(images.frame_spec(2));
  write_row(good);
  EXPECT_NO_THROW(images.frame_spec(1));
  EXPECT_NO_THROW(reader.verify_head());
}

}  // namespace
}  // namespace shard::testing
