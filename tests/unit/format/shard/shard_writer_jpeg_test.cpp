// Codec jpeg in shards: files come back as they were, pixels as libjpeg-turbo decodes them.
#include <gtest/gtest.h>

#include <thread>

#include "base/bytes.hpp"
#include "format/shard/shard_profile.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_shard.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

void expect_sample(const StoredImages& images, std::uint64_t sample, const JpegInput& input,
                   std::uint32_t channels = 3) {
  const FrameSpec of = images.frame_spec(sample);
  EXPECT_EQ(of.file, input.frame.file);
  ASSERT_EQ(of.sample, input.spec(channels));
  Bytes file;
  images.read_file(sample, file);
  EXPECT_EQ(file, input.file);
  Bytes frame;
  images.read_frame(sample, frame);
  EXPECT_EQ(frame, input.frame.bytes);
  Bytes out(of.sample.size_bytes());
  images.read(sample, out);
  EXPECT_EQ(out, input.sample);
  EXPECT_EQ(images.checksum(sample), xxh3(input.sample));
  EXPECT_EQ(images.frame_checksum(sample), xxh3(frame));
}

TEST(ShardWriterJpeg, FilesComeBackAsTheyWere) {
  const TempDir dir;
  const std::uint64_t count = rounds(400, 60);
  const ShardSummary summary = write_jpeg_shard(dir.path() / "s", count);
  const ShardReader reader = ShardReader::open(dir.path() / "s");
  verify_shard(reader);
  EXPECT_EQ(reader.header().container.metadata.at(std::string(kProfileKey)), "3");
  EXPECT_EQ(reader.header().container.metadata.at("codec"), "jpeg:95");
  EXPECT_EQ(summary.largest, reader.header().largest_of_free());
  for (std::uint64_t i = 0; i < count; ++i) expect_sample(reader.images(), i, jpeg_input(i));
}

TEST(ShardWriterJpeg, FilesThatNoEncoderWritesComeBack) {
  const TempDir dir;
  const std::uint64_t count = rounds(400, 60);
  ShardWriter writer = ShardWriter::create(dir.path() / "s", count, jpeg_options());
  std::vector<JpegInput> inputs;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::mt19937_64 random(first_seed() + i);
    inputs.push_back(jpeg_input(random_jpeg(random, {}), static_cast<std::uint32_t>(1 + i % 8)));
    put_jpeg(writer, i, inputs.back().values());
  }
  writer.publish();
  const ShardReader reader = ShardReader::open(dir.path() / "s");
  verify_shard(reader);
  for (std::uint64_t i = 0; i < count; ++i) expect_sample(reader.images(), i, inputs[i]);
}

TEST(ShardWriterJpeg, GrayFilesOfOneChannelComeBack) {
  const TempDir dir;
  write_jpeg_shard(dir.path() / "s", 16, jpeg_options(1));
  const ShardReader reader = ShardReader::open(dir.path() / "s");
  verify_shard(reader);
  for (std::uint64_t i = 0; i < 16; ++i) expect_sample(reader.images(), i, jpeg_input(i, 1), 1);
}

TEST(ShardWriterJpeg, PixelsAreStoredAsTheyWillBeDecoded) {
  const TempDir dir;
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, {CodecSpec::Kind::jpeg, 60});
  options.spec = jpeg_spec().sized(20, 37);
  options.fields = {{"left", FieldRole::image, jpeg_spec(1), {}, {CodecSpec::Kind::jpeg}}};
  write_shard(dir.path() / "s", options, 5);
  const ShardReader reader = ShardReader::open(dir.path() / "s");
  verify_shard(reader);
  EXPECT_EQ(reader.header().fields, options.fields);
  EXPECT_EQ(reader.header().container.metadata.at("codec"), "jpeg:60");
  EXPECT_NE(reader.header().container.find("left.jpeg_files"), nullptr);
  for (std::uint64_t i = 0; i < 5; ++i)
    for (const std::optional<std::size_t> field :
         {std::optional<std::size_t>(), std::optional<std::size_t>(0)}) {
      const StoredImages& images = reader.images(field);
      const FrameSpec of = images.frame_spec(i);
      Bytes file;
      images.read_file(i, file);
      Bytes out(of.sample.size_bytes());
      images.read(i, out);
      EXPECT_EQ(out, jpeg_sample(file, of.sample.channels, 1));
      EXPECT_EQ(images.checksum(i), xxh3(out));
    }
}

TEST(ShardWriterJpeg, TheBytesDoNotDependOnTheOrderOrTheThreads) {
  const TempDir dir;
  constexpr std::uint64_t kSamples = 24;
  const auto values = [](std::uint64_t i, const JpegInput& input) {
    return i % 3 == 0 ? SampleValues(input.sample, input.frame.file.upright_height(),
                                     input.frame.file.upright_width())
                      : input.values();
  };
  {
    ShardWriter writer = ShardWriter::create(dir.path() / "forward", kSamples + 1, jpeg_options());
    for (std::uint64_t i = 0; i < kSamples; ++i) put_jpeg(writer, i, values(i, jpeg_input(i)));
    writer.skip(kSamples);
    writer.publish();
  }
  ShardWriter writer = ShardWriter::create(dir.path() / "back", kSamples + 1, jpeg_options());
  writer.skip(kSamples);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = kSamples; i-- > 0;)
        if (i % 3 == t) put_jpeg(writer, i, values(i, jpeg_input(i)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(writer.waiting_bytes(), 0U);
  writer.publish();
  EXPECT_EQ(file_bytes(dir.path() / "forward"), file_bytes(dir.path() / "back"));
  verify_shard(ShardReader::open(dir.path() / "back"));
}

TEST(ShardWriterJpeg, RefusesFramesThatAreNoneOfTheField) {
  const TempDir dir;
  std::mt19937_64 random(1);
  JpegOptions usual;
  usual.width = 20;
  const JpegInput input = jpeg_input(random_file(random, usual), 6);
  const auto refused = [&](const ShardWriterOptions& options, const SampleValues& values, const char* piece) {
    ShardWriter writer = ShardWriter::create(dir.path() / "s", 1, options);
    EXPECT_SHARD_ERROR(put_jpeg(writer, 0, values), ErrorCode::invalid_argument, piece);
  };
  ShardWriterOptions other = jpeg_options();
  other.codec = {};
  refused(other, input.values(), "a finished frame: only codec jpeg has them");
  refused(jpeg_options(1), input.values(), "3 components; samples of 1 channel have 1");
  other = jpeg_options();
  other.spec = other.spec.sized(7, 7);
  refused(other, input.values(), "are not a sample of 7 rows and 7 columns");
  SampleValues values = input.values();
  values.height += 1;
  refused(jpeg_options(), values, "are not a sample of");
  values = input.values();
  values.bytes = values.bytes.first(values.bytes.size() - 16);
  refused(jpeg_options(), values, "image of JPEG: a frame of");
  values = input.values();
  values.frame->file.orientation = 0;
  refused(jpeg_options(), values, "orientation 0");
  Bytes changed = input.frame.bytes;
  changed[0] = std::byte{0};
  values = input.values();
  values.bytes = changed;
  refused(jpeg_options(), values, "does not begin with the bytes FF D8");
}

// A frame has at most 4 times the bytes of a sample and 1 MiB.
TEST(ShardWriterJpeg, RefusesFilesThatAreFarLargerThanTheirPixels) {
  const TempDir dir;
  std::mt19937_64 random(1);
  Bytes file = random_file(random, {});
  const auto input = [&](std::size_t behind) {
    Bytes longer = file;
    longer.resize(file.size() + behind);
    return jpeg_input(longer, 1);
  };
  const std::size_t most = 4 * 16 * 16 * 3 + (std::size_t{1} << 20);
  const std::size_t left = most - input(0).frame.bytes.size();
  ShardWriter writer = ShardWriter::create(dir.path() / "s", 1, jpeg_options());
  EXPECT_SHARD_ERROR(put_jpeg(writer, 0, input(left + 16).values()), ErrorCode::invalid_argument,
                     "bytes: at most 1051648 for a sample of 768 bytes");
  put_jpeg(writer, 0, input(left / 16 * 16).values());
  writer.publish();
  verify_shard(ShardReader::open(dir.path() / "s"));
}

TEST(ShardWriterJpeg, MasksAreNeverJpegs) {
  const TempDir dir;
  ShardWriterOptions options = small_options();
  options.fields = {
      {"mask", FieldRole::mask, {DType::u8, Layout::nhwc, 1, 4, 5}, {}, {CodecSpec::Kind::jpeg}}};
  EXPECT_SHARD_ERROR(ShardWriter::create(dir.path() / "s", 1, options), ErrorCode::invalid_argument,
                     "field \"mask\" is a mask: codec jpeg would change its class ids");
}

TEST(ShardWriterJpeg, OnlyCodecJpegHasFiles) {
  const TempDir dir;
  write_shard(dir.path() / "s", small_options(), 1);
  const ShardReader reader = ShardReader::open(dir.path() / "s");
  Bytes file;
  EXPECT_SHARD_ERROR(reader.images().read_file(0, file), ErrorCode::unsupported,
                     "has codec none: only with codec jpeg are there files");
  EXPECT_EQ(reader.images().frame_spec(0).sample, reader.images().spec_of(0));
}

}  // namespace
}  // namespace shard::testing
