#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.hpp"
#include "jpeg/frame.hpp"
#include "shard/codec.hpp"
#include "shard/jpeg_frame.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/jpeg_samples.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

const CodecSpec kJpeg{CodecSpec::Kind::jpeg};

Codec codec_of(std::uint32_t channels = 3) { return {kJpeg, jpeg_spec(channels)}; }

FrameSpec spec_of(const JpegFrame& frame, std::uint32_t channels = 3) {
  return {jpeg_spec(channels).sized(frame.file.upright_height(), frame.file.upright_width()), frame.file};
}

Bytes decoded(std::span<const std::byte> frame, const FrameSpec& of) {
  Bytes sample(of.sample.size_bytes());
  codec_of(of.sample.channels).decode(frame, sample, of);
  return sample;
}

JpegFrame usual_frame(std::uint32_t width = 40, std::uint32_t height = 24) {
  std::mt19937_64 random(3);
  JpegOptions options;
  options.width = width;
  options.height = height;
  options.factors = {{2, 2}, {1, 1}, {1, 1}};
  return make_jpeg_frame(random_file(random, options));
}

TEST(CodecJpeg, TheSampleIsWhatLibjpegDecodesTurnedUpright) {
  const std::uint64_t count = rounds(2000, 300);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    const Bytes file =
        round % 3 == 0 ? random_jpeg(random, {}) : random_file(random, random_options(random, 70));
    const auto orientation = static_cast<std::uint32_t>(1 + random() % 8);
    const JpegFrame frame = make_jpeg_frame(file, orientation);
    const Bytes own(frame.bytes.begin(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(file.size()));
    ASSERT_EQ(own, file);
    ASSERT_EQ(frame.bytes.size() % 16, 0U);
    for (const std::uint32_t channels : {1U, 3U}) {
      const FrameSpec of = spec_of(frame, channels);
      if (channels == 1 && frame.file.components() != 1) {
        EXPECT_SHARD_ERROR(decoded(frame.bytes, of), ErrorCode::corrupt, "components; samples of 1 channel");
        continue;
      }
      ASSERT_EQ(decoded(frame.bytes, of), jpeg_sample(file, channels, static_cast<int>(orientation)))
          << "seed " << first_seed() + round << ", orientation " << orientation;
      ASSERT_NO_THROW(codec_of(channels).verify(frame.bytes, of)) << "seed " << first_seed() + round;
    }
  }
}

TEST(CodecJpeg, APartHasThePixelsOfTheWholeAndLeavesTheRest) {
  const std::uint64_t count = rounds(2000, 300);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
    const Bytes file = round % 3 == 0
                           ? random_jpeg(random, {})
                           : random_file(random, random_options(random, round % 3 == 1 ? 70 : 200));
    const JpegFrame frame = make_jpeg_frame(file, 1 + below(8));
    const FrameSpec of = spec_of(frame);
    const Bytes whole = decoded(frame.bytes, of);
    for (int part = 0; part < 6; ++part) {
      SampleBox box;
      box.left = below(of.sample.width);
      box.top = below(of.sample.height);
      box.width = 1 + below(of.sample.width - box.left);
      box.height = 1 + below(of.sample.height - box.top);
      Bytes expected(whole.size(), std::byte{0xA5});
      Bytes sample = expected;
      for (std::size_t y = box.top; y < box.top + box.height; ++y) {
        const std::size_t at = (y * of.sample.width + box.left) * 3;
        std::memcpy(&expected[at], &whole[at], std::size_t{box.width} * 3);
      }
      codec_of().decode_part(frame.bytes, sample, of, box);
      ASSERT_EQ(sample, expected) << "seed " << first_seed() + round << ", orientation "
                                  << frame.file.orientation << ", box " << box.width << " x " << box.height
                                  << " at " << box.left << ", " << box.top;
    }
  }
  const JpegFrame frame = usual_frame();
  Bytes sample(40 * 24 * 3);
  EXPECT_SHARD_ERROR(codec_of().decode_part(frame.bytes, sample, spec_of(frame), {30, 0, 11, 4}),
                     ErrorCode::invalid_argument, "column 30 of a sample of 24 x 40");
}

TEST(CodecJpeg, EncodesPixelsAtTheQualityIn420) {
  std::mt19937_64 random(1);
  Bytes sample;
  for (int i = 0; i < 48 * 40 * 3; ++i) sample.push_back(static_cast<std::byte>(i / 40 + random() % 4));
  std::size_t before = 0;
  for (const int quality : {1, 30, 95, 100}) {
    const Codec codec({CodecSpec::Kind::jpeg, quality}, jpeg_spec().sized(48, 40));
    FrameSpec of(jpeg_spec().sized(48, 40));
    const Bytes frame = codec.encode(sample, of);
    EXPECT_EQ(of.file.factors, 0x111122U);
    EXPECT_EQ(of.file.size, 40U | 48U << 16);
    EXPECT_EQ(of.file.orientation, 1U);
    EXPECT_EQ(frame.size(), codec.least_frame_bytes(of));
    EXPECT_GT(of.file.bytes, before);
    before = of.file.bytes;
    const Bytes back = decoded(frame, of);
    EXPECT_EQ(back, jpeg_sample(file_of(frame, of.file), 3, 1));
    int worst = 0;
    for (std::size_t i = 0; i < back.size(); ++i)
      worst = std::max(worst, std::abs(std::to_integer<int>(back[i]) - std::to_integer<int>(sample[i])));
    EXPECT_TRUE(quality < 100 || worst < 12) << worst;
    EXPECT_NO_THROW(codec.verify(frame, of));
  }
  FrameSpec gray(jpeg_spec(1).sized(48, 120));
  const Bytes frame = codec_of(1).encode(sample, gray);
  EXPECT_EQ(gray.file.factors, 0x11U);
  EXPECT_EQ(decoded(frame, gray), jpeg_sample(file_of(frame, gray.file), 1, 1));
  const SampleSpec large = jpeg_spec(1).sized(1, 65501);
  EXPECT_SHARD_ERROR(codec_of(1).encode(Bytes(65501), large), ErrorCode::invalid_argument,
                     "65501 x 1 pixels do not fit into a JPEG");
}

TEST(CodecJpeg, HoldsBytesOfRowsOfPixelsOfOneOrThreeChannels) {
  for (const std::uint32_t channels : {1U, 2U, 3U, 4U, 5U})
    EXPECT_EQ(kJpeg.can_hold(jpeg_spec(channels)), channels == 1 || channels == 3);
  EXPECT_FALSE(kJpeg.can_hold({DType::u8, Layout::nchw, 3, 0, 0}));
  EXPECT_FALSE(kJpeg.can_hold({DType::f16, Layout::nhwc, 3, 0, 0}));
  EXPECT_SHARD_ERROR(Codec(kJpeg, {DType::u8, Layout::nchw, 3, 8, 8}), ErrorCode::invalid_argument,
                     "codec jpeg holds images of u8 nhwc with 1 or 3 channels, not u8 nchw with 3 channels: "
                     "use ");
  EXPECT_EQ(to_string(codec_spec_from_string("jpeg")), "jpeg:95");
  EXPECT_EQ(codec_spec_from_string("jpeg:80").level, 80);
}

TEST(CodecJpeg, WhatTheHeadSaysMustBeOfTheSample) {
  const JpegFrame frame = usual_frame();
  const auto expect = [&](const char* piece, auto change) {
    FrameSpec of = spec_of(frame);
    change(of);
    EXPECT_SHARD_ERROR(decoded(frame.bytes, of), ErrorCode::corrupt, piece);
    EXPECT_SHARD_ERROR(codec_of().check_frame(frame.bytes, of), ErrorCode::corrupt, piece);
  };
  expect("orientation 9", [](FrameSpec& of) { of.file.orientation = 9; });
  expect("40 x 24 pixels of orientation 6 are not a sample of 24 rows and 40 columns",
         [](FrameSpec& of) { of.file.orientation = 6; });
  expect("not those of 1, 3 or 4 components", [](FrameSpec& of) { of.file.factors = 0; });
  expect("a frame of ", [](FrameSpec& of) { of.file.bytes += 16; });
  expect("40 x 24 and 0x111111", [](FrameSpec& of) { of.file.factors = 0x111111; });  // as many bytes
  expect(
      "its file has 40 x 24 pixels and sampling factors 0x111122; the head of the shard says 40 x 24 and "
      "0x211122",
      [](FrameSpec& of) { of.file.factors = 0x211122; });
  // As many MCUs.
  expect("its file has 40 x 24 pixels", [](FrameSpec& of) {
    of.file.size = 39 | 24 << 16;
    of.sample.width = 39;
  });
  EXPECT_SHARD_ERROR(decoded(frame.bytes, FrameSpec(spec_of(frame).sample)), ErrorCode::invalid_argument,
                     "what the head of the shard says of the file is missing");
}

TEST(CodecJpeg, FindsFramesThatAreNone) {
  const JpegFrame good = usual_frame();
  const FrameSpec of = spec_of(good);
  const auto index = static_cast<std::size_t>(jpeg::index_offset(of.file));
  const auto expect = [&](const char* piece, auto change) {
    Bytes frame = good.bytes;
    change(frame);
    EXPECT_SHARD_ERROR(decoded(frame, of), ErrorCode::corrupt, piece);
    EXPECT_SHARD_ERROR(codec_of().verify(frame, of), ErrorCode::corrupt, piece);
  };
  expect("a frame of ", [](Bytes& f) { f.resize(f.size() - 16); });
  expect("a frame of ", [](Bytes& f) { f.resize(f.size() + 16); });
  expect("does not begin with the bytes FF D8", [](Bytes& f) { f[0] = std::byte{0}; });
  expect("JPEG index: begins with 2", [&](Bytes& f) { f[index] = std::byte{2}; });
  expect("JPEG index: ", [&](Bytes& f) { store_u32(f, index + 8, 7); });
  // The file ends within its image data: zeros instead of EOI.
  expect("", [&](Bytes& f) { std::fill_n(f.begin() + of.file.bytes - 20, 20, std::byte{0}); });
  if (index > of.file.bytes) expect("are not zero", [&](Bytes& f) { f[of.file.bytes] = std::byte{1}; });
}

TEST(CodecJpeg, AnotherKindOfFileIsNoFrame) {
  std::mt19937_64 random(4);
  JpegOptions options;
  options.width = 40;
  options.height = 24;
  options.factors = {{2, 2}, {1, 1}, {1, 1}};
  options.progressive = true;
  const Bytes file = random_file(random, options);
  EXPECT_SHARD_ERROR(make_jpeg_frame(file), ErrorCode::unsupported, "progressive (SOF2)");
  JpegFrame frame = usual_frame();
  frame.file.bytes = static_cast<std::uint32_t>(file.size());
  const Bytes index(jpeg::index_bytes(jpeg::geometry_of(frame.file)));
  frame.bytes = jpeg::make_frame(frame.file, file, index);
  EXPECT_SHARD_ERROR(decoded(frame.bytes, spec_of(frame)), ErrorCode::corrupt, "progressive (SOF2)");
}

TEST(CodecJpeg, VerifyFindsEachIndexThatIsNotTheFiles) {
  const JpegFrame good = usual_frame(300, 60);
  const FrameSpec of = spec_of(good);
  const auto index = static_cast<std::size_t>(jpeg::index_offset(of.file));
  int found_by_verify_alone = 0;
  for (std::size_t at = index; at < good.bytes.size(); ++at) {
    Bytes frame = good.bytes;
    frame[at] ^= std::byte{4};
    EXPECT_SHARD_ERROR(codec_of().verify(frame, of), ErrorCode::corrupt, "");
    try {
      EXPECT_EQ(decoded(frame, of), decoded(good.bytes, of));  // the host does not need it
      ++found_by_verify_alone;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(found_by_verify_alone, 50);
  Bytes frame = good.bytes;
  frame[index + 16 + 4 * 12 + 6] ^= std::byte{1};  // a predictor
  EXPECT_SHARD_ERROR(codec_of().verify(frame, of), ErrorCode::corrupt,
                     "the index is not that of its file: byte");
}

TEST(CodecJpeg, BytesBehindTheImageDataAreAnEncodersOrDamage) {
  std::mt19937_64 random(9);
  JpegOptions options;
  options.width = options.height = 64;
  const Bytes file = random_file(random, options);
  Bytes extra = file;
  const Bytes more{std::byte{0x12}, std::byte{0x34}};
  extra.insert(extra.end() - 2, more.begin(), more.end());
  const JpegFrame frame = make_jpeg_frame(extra);
  EXPECT_EQ(frame.extra_bytes, 2U);
  EXPECT_EQ(decoded(frame.bytes, spec_of(frame)), jpeg_sample(file, 3, 1));

  // Damage of any bit of the image data: an error, or an image of which all codes still are where they were.
  const JpegFrame good = make_jpeg_frame(file);
  const std::uint32_t data = jpeg::parse_header(file).data_offset;
  int errors = 0;
  for (std::size_t bit = std::size_t{data} * 8; bit < file.size() * 8; bit += 5) {
    Bytes damaged = good.bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    try {
      decoded(damaged, spec_of(good));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(CodecJpeg, AFrameThatIsCutOrChangedAtRandomNeverDoesHarm) {
  const JpegFrame good = usual_frame();
  const std::uint64_t count = rounds(5000, 500);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    Bytes frame = good.bytes;
    for (std::uint64_t i = 1 + random() % 4; i > 0; --i)
      frame[random() % frame.size()] = static_cast<std::byte>(random());
    try {
      decoded(frame, spec_of(good));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
    }
  }
}

}  // namespace
}  // namespace shard::testing
