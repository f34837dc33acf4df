// The rules of codec jpeg: a shard that breaks one is refused with that rule, though its digests are right.
#include <gtest/gtest.h>

#include <functional>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "format/shard/shard_profile.hpp"
#include "jpeg/frame.hpp"
#include "support/expect_error.hpp"
#include "support/format/shard_parts.hpp"
#include "support/jpeg/jpeg_shard.hpp"
#include "support/memory_file.hpp"
#include "support/temp_dir.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;
using Change = std::function<void(Parts&)>;

// Samples 0 and 1: 4:2:0 files of 40 x 24 pixels, as they are and turned (so 24 rows, then 40); sample 2:
// gray.
class JpegProfile : public ::testing::Test {
 protected:
  static JpegInput input(std::size_t sample) {
    std::mt19937_64 random(sample);
    JpegOptions options;
    options.width = 40;
    options.height = 24;
    options.factors = {{2, 2}, {1, 1}, {1, 1}};
    if (sample == 2) options.components = 1;
    return jpeg_input(random_file(random, options), sample == 1 ? 6 : 1);
  }
  static Parts good(const ShardWriterOptions& options = jpeg_options()) {
    const TempDir dir;
    ShardWriter writer = ShardWriter::create(dir.path() / "s", 3, options);
    for (std::size_t i = 0; i < 3; ++i) put_jpeg(writer, i, input(i).values());
    writer.publish();
    return take_apart(file_bytes(dir.path() / "s"));
  }
  void open(const Parts& parts) {
    file_.assign(put_together(parts));
    verify_shard(ShardReader::open(file_.path()));
  }
  void refused(const Change& change, const char* why, ErrorCode code = ErrorCode::corrupt) {
    Parts parts = good();
    change(parts);
    EXPECT_SHARD_ERROR(open(parts), code, why);
  }
  static Change set(const char* key, const char* value) {
    return [=](Parts& p) { p.header.metadata[key] = value; };
  }
  static Change set_file(std::size_t sample, std::size_t number, std::uint32_t value) {
    return [=](Parts& p) { store_u32(p.data.at("jpeg_files"), sample * 16 + number * 4, value); };
  }
  // The frame of a sample, with the right digest afterwards.
  static Change frame(std::size_t sample,
                      const std::function<void(std::span<std::byte>, jpeg::FrameFile)>& change) {
    return [=](Parts& p) {
      const auto offset = [&](std::size_t i) {
        return static_cast<std::size_t>(load_u64(p.data.at("frame_offsets"), i * 8));
      };
      const std::span<std::byte> bytes =
          std::span(p.data.at("image_frames")).subspan(offset(sample), offset(sample + 1) - offset(sample));
      change(bytes, load_jpeg_file(p.data.at("jpeg_files"), sample * 16));
      store_u64(p.data.at("frame_checksums"), sample * 8, xxh3(bytes));
    };
  }
  MemoryFile file_;
};

TEST_F(JpegProfile, PutTogetherUnchangedItIsSound) {
  EXPECT_NO_THROW(open(good()));
  EXPECT_EQ(good().tensor("jpeg_files").shape, (std::vector<std::uint64_t>{3, 4}));
}

TEST_F(JpegProfile, MetadataRules) {
  refused(set("shard.profile", "2"), "version 2 does not have samples of any size");
  refused(set("codec", "jpeg"), "codec \"jpeg\" must be written jpeg:95");
  for (const char* codec : {"jpeg:0", "jpeg:101", "jpeg:95 ", "jpeg:-1"})
    refused(set("codec", codec), "is not known", ErrorCode::unsupported);
  refused(set("codec", "jpeg:095"), "must be written jpeg:95");
  refused(set("dtype", "i8"), "", ErrorCode::corrupt);
  refused(set("dtype", "f16"), "codec jpeg holds images of u8 nhwc with 1 or 3 channels, not f16 nhwc");
  refused(set("layout", "nchw"), "");
  refused(set("shape", "0,0,4"),
          "codec jpeg holds images of u8 nhwc with 1 or 3 channels, not u8 nhwc with 4");
  refused(set("shape", "0,0,1"), "3 components; samples of 1 channel have 1");
  refused(set("codec", "packed"), "packed frame states version 255");
}

TEST_F(JpegProfile, ARigidShardNeedsVersion3) {
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, {CodecSpec::Kind::jpeg});
  const TempDir dir;
  write_shard(dir.path() / "s", options, 2);
  Parts parts = take_apart(file_bytes(dir.path() / "s"));
  EXPECT_EQ(parts.header.metadata.at("shard.profile"), "3");
  EXPECT_NO_THROW(open(parts));
  parts.header.metadata["shard.profile"] = "2";
  EXPECT_SHARD_ERROR(open(parts), ErrorCode::corrupt, "version 2 does not have codec jpeg");
  options.codec = {};
  options.fields = {{"left", FieldRole::image, jpeg_spec().sized(9, 8), {}, {CodecSpec::Kind::jpeg}}};
  write_shard(dir.path() / "f", options, 2);
  parts = take_apart(file_bytes(dir.path() / "f"));
  parts.header.metadata["shard.profile"] = "2";
  EXPECT_SHARD_ERROR(open(parts), ErrorCode::corrupt,
                     "version 2 does not have further image fields of codec jpeg");
}

TEST_F(JpegProfile, TensorRules) {
  refused([](Parts& p) { p.erase("jpeg_files"); }, "tensor \"jpeg_files\" is missing");
  refused([](Parts& p) { p.tensor("jpeg_files").dtype = DType::i32; }, "it must be U32 [3, 4]");
  refused([](Parts& p) { p.tensor("jpeg_files").shape = {4, 3}; }, "it must be U32 [3, 4]");
  refused(
      [](Parts& p) {
        p.tensor("image_frames").shape[0] -= 16,
            p.data["image_frames"].resize(p.data["image_frames"].size() - 16);
      },
      "there are only");
}

TEST_F(JpegProfile, RowsMustBeOfTheirSamples) {
  EXPECT_EQ(load_jpeg_file(good().data.at("jpeg_files"), 16), input(1).frame.file);
  refused(set_file(0, 0, 0), "jpeg_files of sample 0: JPEG: a file of 0 bytes");
  refused(set_file(0, 0, input(0).frame.file.bytes + 16), "and its index have ");
  refused(set_file(0, 0, 0xFFFFFFFF), "the frame of sample 0 has ");
  refused(set_file(0, 1, 0), "sampling factors 0x00000000");
  refused(set_file(0, 1, 0x112122), "its file has 40 x 24 pixels and sampling factors 0x111122");
  refused(set_file(0, 1, 0x111133), "11 blocks in an MCU; 10 are possible");
  refused(set_file(2, 1, 0x12), "sampling factors 0x12 of one component: they are 0x11");
  refused(set_file(0, 2, 40), "40 x 0 pixels");
  refused(set_file(0, 2, 24 | 40 << 16), "are not a sample of 24 rows and 40 columns");
  refused(set_file(0, 2, 65501 | 24 << 16), "65501 x 24 pixels; a side has 1 to 65500");
  for (const std::uint32_t orientation : {0U, 9U, 256U + 1U, 1U << 31 | 1U})
    refused(set_file(0, 3, orientation), "jpeg_files of sample 0: JPEG: orientation ");
  refused(set_file(0, 3, 6), "40 x 24 pixels of orientation 6 are not a sample of 24 rows and 40 columns");
  refused(set_file(0, 3, 3), "its XXH3-64 is");  // the pixels of another orientation
  refused([](Parts& p) { store_u32(p.data.at("shapes"), 0, 23); }, "are not a sample of 23 rows");
}

TEST_F(JpegProfile, FramesHaveOneSize) {
  const auto offset = [](std::size_t index, int by) -> Change {
    return [=](Parts& p) {
      store_u64(p.data.at("frame_offsets"), index * 8,
                load_u64(p.data.at("frame_offsets"), index * 8) + static_cast<std::uint64_t>(by));
    };
  };
  refused(offset(1, 16), "the frame of sample 0 has ");
  refused(offset(1, -16), "the frame of sample 0 has ");
  refused(offset(2, 1), "and its index have ");
}

TEST_F(JpegProfile, FramesHoldTheFileAndItsIndex) {
  using File = jpeg::FrameFile;
  using Frame = std::span<std::byte>;
  const auto index = [](const File& file) { return static_cast<std::size_t>(jpeg::index_offset(file)); };
  refused(frame(1, [](Frame f, File) { f[0] = std::byte{0}; }),
          "sample 1 (\"class/photo 1.jpg\"): JPEG: does not begin with the bytes FF D8");
  refused(frame(0, [](Frame f, File file) { std::fill_n(f.begin() + file.bytes - 40, 40, std::byte{0}); }),
          "sample 0");
  refused(frame(0, [](Frame f, File) { f.back() = std::byte{1}; }), "are not zero");
  refused(frame(0, [&](Frame f, File file) { f[index(file)] = std::byte{3}; }), "JPEG index: begins with 3");
  refused(frame(0, [&](Frame f, File file) { store_u32(f, index(file) + 4, 9); }), "JPEG index: 9 entries");
  refused(frame(0, [&](Frame f, File file) { store_u32(f, index(file) + 12, 0x7FFFFFFF); }),
          "the image data end at bit 2147483647");
  refused(frame(0, [&](Frame f,
                       File file) { store_u32(f, index(file) + 20, load_u32(f, index(file) + 20) + 1); }),
          "the index is not that of its file: byte");
  refused(frame(0, [&](Frame f, File file) { f[index(file) + 24 + 6] ^= std::byte{1}; }),
          "the index is not that of its file: byte");
  // Another file of the same size, with an index of its own: nothing but the digest of the sample tells.
  const auto coefficient = [](Frame f, File file) {
    for (std::size_t at = file.bytes - 30; at < file.bytes - 3; ++at) {
      Bytes other(f.begin(), f.begin() + file.bytes);
      other[at] ^= std::byte{1};
      try {
        const JpegFrame made = make_jpeg_frame(other);
        if (made.extra_bytes != 0) continue;
        std::copy(made.bytes.begin(), made.bytes.end(), f.begin());
        return;
      } catch (const Error&) {
      }
    }
    FAIL() << "no bit of the last bytes can be changed";
  };
  refused(frame(0, coefficient), "its XXH3-64 is");
}

TEST_F(JpegProfile, DigestsCoverFrames) {
  refused([](Parts& p) { p.data.at("image_frames")[3] ^= std::byte{1}; }, "its stored frame has the XXH3-64");
  refused([](Parts& p) { p.data.at("checksums")[3] ^= std::byte{1}; }, "its XXH3-64 is");
}

TEST_F(JpegProfile, NamesOfTheirTensorsAreTaken) {
  ShardWriterOptions options = jpeg_options();
  options.columns.push_back({"jpeg_files", DType::u8, {}});
  EXPECT_SHARD_ERROR(good(options), ErrorCode::invalid_argument, "the files of the images have this name");
  ShardWriterOptions fields = small_options();
  fields.fields = {{"left", FieldRole::image, jpeg_spec(), {}, {CodecSpec::Kind::jpeg}}};
  fields.columns.push_back({"left.jpeg_files", DType::u8, {}});
  EXPECT_SHARD_ERROR(check_writer_options(fields), ErrorCode::invalid_argument, "there is another tensor");
  // Without the codec, the name is free.
  options = small_options();
  options.columns.push_back({"jpeg_files", DType::u32, {4}});
  const TempDir dir;
  write_shard(dir.path() / "s", options, 2);
  EXPECT_NO_THROW(open(take_apart(file_bytes(dir.path() / "s"))));
}

TEST_F(JpegProfile, AMaskIsNoJpeg) {
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc);
  options.fields = {{"left", FieldRole::image, jpeg_spec(1).sized(9, 8), {}, {CodecSpec::Kind::jpeg}}};
  const TempDir dir;
  write_shard(dir.path() / "s", options, 2);
  Parts parts = take_apart(file_bytes(dir.path() / "s"));
  EXPECT_NO_THROW(open(parts));
  parts.header.metadata["field.left"] = "mask";
  EXPECT_SHARD_ERROR(open(parts), ErrorCode::corrupt, "is a mask: codec jpeg would change its class ids");
}

}  // namespace
}  // namespace shard::testing
