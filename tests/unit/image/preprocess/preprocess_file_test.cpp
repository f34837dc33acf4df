// run_file, which decodes only what the crop needs, gives the bytes of a whole decode and run.
#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/image/preprocess_support.hpp"

namespace shard::testing {
namespace {

using namespace image;

PreprocessOptions small_samples(Filter filter) {
  PreprocessOptions options;
  options.resize_short = 40;
  options.crop = Size{32, 24};
  options.filter = filter;
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  return options;
}

// The JPEG with an Exif segment that says `orientation` behind its first marker.
Bytes with_orientation(const Bytes& jpeg, int orientation) {
  const unsigned char segment[] = {
      0xFF, 0xE1, 0, 34, 'E', 'x',  'i',  'f', 0, 0, 'M', 'M', 0, 42, 0,
      0,    0,    8, 0,  1,   0x01, 0x12, 0,   3, 0, 0,   0,   1, 0,  static_cast<unsigned char>(orientation),
      0,    0,    0, 0,  0,   0};
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  for (const unsigned char byte : segment) file.push_back(std::byte{byte});
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

void expect_same_as_whole(const Bytes& file, const PreprocessOptions& options,
                          const DecodeOptions& decode = {}) {
  Preprocessor preprocessor(options);
  Decoder decoder;
  std::vector<std::byte> in_part(options.sample_spec().size_bytes());
  std::vector<std::byte> whole(options.sample_spec().size_bytes());
  preprocessor.run_file(decoder, file, decode, in_part);
  preprocessor.run(decoder.decode(file, decode), whole);
  EXPECT_EQ(in_part, whole);
}

TEST(PreprocessFile, GivesTheBytesOfAWholeDecodeForEverySizeAndSampling) {
  for (const int subsampling : {444, 422, 420}) {
    for (const Size size :
         {Size{1, 1}, Size{16, 16}, Size{40, 40}, Size{41, 120}, Size{200, 33}, Size{317, 243}}) {
      const Bytes file = encode_jpeg(view_of(smooth_picture(size.width, size.height)), 90, subsampling);
      for (const Filter filter : {Filter::box, Filter::bilinear, Filter::lanczos}) {
        SCOPED_TRACE(std::to_string(size.width) + "x" + std::to_string(size.height) + " " +
                     std::to_string(subsampling));
        expect_same_as_whole(file, small_samples(filter));
      }
    }
  }
}

TEST(PreprocessFile, GivesTheBytesOfAWholeDecodeForEveryOrientation) {
  const Bytes file = encode_jpeg(view_of(smooth_picture(173, 121)), 90);
  Decoder decoder;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Bytes turned = with_orientation(file, orientation);
    ASSERT_EQ(read_info(turned, 1'000'000).orientation, orientation);
    ASSERT_EQ(decoder.decode(turned, {}).width, orientation >= 5 ? 121U : 173U);
    expect_same_as_whole(turned, small_samples(Filter::bicubic));
  }
}

TEST(PreprocessFile, GivesTheBytesOfAWholeDecodeForEveryKindOfFile) {
  const auto files = golden_files("images");
  ASSERT_GT(files.size(), 20U);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    expect_same_as_whole(read_file(path), small_samples(Filter::bilinear));
    PreprocessOptions floats = small_samples(Filter::bicubic);
    floats.dtype = DType::f16;
    floats.layout = Layout::nchw;
    expect_same_as_whole(read_file(path), floats);
  }
}

TEST(PreprocessFile, GivesTheBytesOfAWholeDecodeWhenScaledWhileDecoding) {
  const Bytes file = encode_jpeg(view_of(smooth_picture(333, 250)), 90);
  DecodeOptions decode;
  decode.fast_min_short_side = 40;
  expect_same_as_whole(file, small_samples(Filter::bilinear), decode);
}

TEST(PreprocessFile, OfOneAfterTheOtherIsTheSameAsOfEachAlone) {
  const PreprocessOptions options = small_samples(Filter::bilinear);
  Preprocessor reused(options);
  Decoder decoder;
  std::vector<std::byte> sample(options.sample_spec().size_bytes());
  std::vector<std::byte> alone(options.sample_spec().size_bytes());
  for (std::uint32_t i = 0; i < 60; ++i) {
    const Pixels picture = smooth_picture(30 + i * 37 % 300, 30 + i * 53 % 200);
    const Bytes file = i % 3 == 0 ? encode_png(view_of(picture)) : encode_jpeg(view_of(picture), 80);
    reused.run_file(decoder, file, {}, sample);
    Preprocessor(options).run_file(decoder, file, {}, alone);
    ASSERT_EQ(sample, alone) << i;
  }
}

TEST(PreprocessFile, RefusesDamageOutsideOfTheCrop) {
  PreprocessOptions options = small_samples(Filter::bilinear);
  options.crop = Size{8, 8};  // of the middle: the end of the file shows nowhere
  Preprocessor preprocessor(options);
  Decoder decoder;
  std::vector<std::byte> sample(options.sample_spec().size_bytes());
  const Bytes file = encode_jpeg(view_of(smooth_picture(160, 320)), 90);
  Bytes cut(file.begin(), file.end() - static_cast<std::ptrdiff_t>(file.size() / 8));
  EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, cut, {}, sample), ErrorCode::corrupt, "");
  preprocessor.run_file(decoder, file, {}, sample);  // and is as good as new
  std::vector<std::byte> expected(sample.size());
  preprocessor.run(decoder.decode(file, {}), expected);
  EXPECT_EQ(sample, expected);
}

TEST(PreprocessFile, RefusesWhatTheDecoderRefuses) {
  const PreprocessOptions options = small_samples(Filter::bilinear);
  Preprocessor preprocessor(options);
  Decoder decoder;
  std::vector<std::byte> sample(options.sample_spec().size_bytes());
  const Bytes file = encode_jpeg(view_of(smooth_picture(100, 100)), 90);
  DecodeOptions tight;
  tight.max_pixels = 9999;
  EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, file, tight, sample), ErrorCode::resource, "9999");
  const std::atomic<bool> stop = true;
  DecodeOptions stopped;
  stopped.cancel = &stop;
  EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, file, stopped, sample), ErrorCode::cancelled, "");
  EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, {}, {}, sample), ErrorCode::corrupt, "empty");
  EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, file, {}, std::span(sample).first(5)),
                     ErrorCode::invalid_argument, "out has 5 bytes");
  const auto refused = golden_files("refused");
  ASSERT_FALSE(refused.empty());
  for (const auto& path : refused) {
    SCOPED_TRACE(path.filename().string());
    EXPECT_THROW(preprocessor.run_file(decoder, read_file(path), {}, sample), Error);
  }
}

}  // namespace
}  // namespace shard::testing
