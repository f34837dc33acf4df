// JPEG files become frames that decode to the pixels of the image contract.
#include "shard/image/jpeg_originals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "shard/codec.hpp"
#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_files.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::image {
namespace {

using testing::JpegOptions;

std::vector<std::byte> file_of(JpegOptions options, std::uint32_t width = 45, std::uint32_t height = 37) {
  options.width = width;
  options.height = height;
  std::mt19937 random(width * 7919 + height);
  std::vector<std::uint8_t> pixels(std::size_t{width} * height * static_cast<unsigned>(options.components));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i / 3 + random() % 32);
  return testing::encode_jpeg(options, pixels);
}

std::vector<std::byte> turned(std::vector<std::byte> file, int orientation) {
  const std::vector<int> exif{0xFF, 0xE1, 0, 34, 'E', 'x',         'i', 'f', 0, 0,  'M', 'M',
                              0,    42,   0, 0,  0,   8,           0,   1,   1, 18, 0,   3,
                              0,    0,    0, 1,  0,   orientation, 0,   0,   0, 0,  0,   0};
  std::vector<std::byte> segment;
  for (const int value : exif) segment.push_back(static_cast<std::byte>(value));
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

// Takes a file, and expects that the frame decodes to the sample, which is that of the decoder.
JpegOriginal expect_frame(std::span<const std::byte> file, const DecodeOptions& options = {}) {
  JpegOriginals originals;
  Decoder decoder;
  std::vector<std::byte> sample;
  JpegOriginal original = originals.take(file, options, sample);
  const RgbView expected = decoder.decode(file, options);
  EXPECT_EQ(original.width, expected.width);
  EXPECT_EQ(original.height, expected.height);
  EXPECT_EQ(sample.size(), std::size_t{3} * expected.width * expected.height);
  EXPECT_TRUE(std::equal(sample.begin(), sample.end(), reinterpret_cast<const std::byte*>(expected.data)));
  EXPECT_EQ(original.warnings, decoder.warnings());
  EXPECT_TRUE(original.frame);
  if (!original.frame) return original;
  const SampleSpec free{DType::u8, Layout::nhwc, 3, 0, 0};
  const Codec codec({CodecSpec::Kind::jpeg, 95}, free, {});
  std::vector<std::byte> decoded(sample.size());
  codec.decode(original.frame->bytes, decoded,
               {free.sized(original.height, original.width), original.frame->file});
  EXPECT_EQ(decoded, sample);
  return original;
}

TEST(JpegOriginals, FramesHaveTheFileAndDecodeToItsPixels) {
  for (const auto& factors : {std::array{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const int restart : {0, 2}) {
      JpegOptions options;
      options.factors[0] = factors;
      options.restart_interval = restart;
      const auto file = file_of(options);
      const JpegOriginal original = expect_frame(file);
      ASSERT_TRUE(original.frame) << options.text();
      EXPECT_FALSE(original.transcoded);
      EXPECT_TRUE(std::equal(file.begin(), file.end(), original.frame->bytes.begin()));
      EXPECT_EQ(original.frame->file.bytes, file.size());
    }
}

TEST(JpegOriginals, TakesGrayRgbCmykYcckAndOnePixel) {
  for (const int components : {1, 3, 4})
    for (const bool as_is : {false, true}) {
      JpegOptions options;
      options.components = components;
      options.as_is = as_is;
      EXPECT_FALSE(expect_frame(file_of(options)).transcoded) << options.text();
      EXPECT_FALSE(expect_frame(file_of(options, 1, 1)).transcoded) << options.text();
    }
}

TEST(JpegOriginals, TurnsFilesUprightAndKeepsThem) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto file = turned(file_of({}), orientation);
    const JpegOriginal original = expect_frame(file);
    ASSERT_TRUE(original.frame);
    EXPECT_EQ(original.frame->file.orientation, static_cast<std::uint32_t>(orientation));
    EXPECT_EQ(original.width, orientation >= 5 ? 37U : 45U);
    EXPECT_FALSE(original.transcoded);
  }
}

TEST(JpegOriginals, TranscodesWhatNoFrameHoldsWithTheSamePixels) {
  JpegOptions progressive, arithmetic, scans;
  progressive.progressive = arithmetic.arithmetic = scans.scan_of_each = true;
  for (const JpegOptions& options : {progressive, arithmetic, scans})
    for (const int orientation : {1, 6})
      EXPECT_TRUE(expect_frame(turned(file_of(options), orientation)).transcoded) << options.text();
}

TEST(JpegOriginals, RefusesDamageAsTheDecoderDoes) {
  auto file = file_of({});
  file.resize(file.size() / 2);
  JpegOriginals originals;
  std::vector<std::byte> sample;
  EXPECT_SHARD_ERROR(originals.take(file, {}, sample), ErrorCode::corrupt, "JPEG");
  // What is accepted has the decoder's pixels, in a frame of another file or in none.
  DecodeOptions accept;
  accept.on_warning = OnWarning::accept;
  Decoder decoder;
  const JpegOriginal original = originals.take(file, accept, sample);
  const RgbView expected = decoder.decode(file, accept);
  EXPECT_TRUE(std::equal(sample.begin(), sample.end(), reinterpret_cast<const std::byte*>(expected.data)));
  EXPECT_TRUE(original.transcoded || !original.frame);
  EXPECT_SHARD_ERROR(originals.take(file_of({}), {.max_pixels = 100}, sample), ErrorCode::resource, "pixels");
  EXPECT_NO_THROW(expect_frame(file_of({})));
}

struct Uses {
  int refused = 0;
  int kept = 0;
  int transcoded = 0;
  int without_frame = 0;
  int undecoded = 0;
};

// Whatever is stored of a damaged file: the frame decodes to the sample, and the sample is the decoder's.
void expect_sound(std::span<const std::byte> file, OnWarning on_warning, Uses& uses) {
  DecodeOptions options;
  options.on_warning = on_warning;
  options.max_pixels = 1 << 20;
  JpegOriginals originals;
  Decoder decoder;
  std::vector<std::byte> sample;
  JpegOriginal original;
  std::string refused;
  try {
    original = originals.take(file, options, sample);
  } catch (const Error& error) {
    refused = error.what();
  }
  try {
    const RgbView expected = decoder.decode(file, options);
    ASSERT_EQ(refused, "");
    ASSERT_EQ(sample.size(), std::size_t{3} * expected.width * expected.height);
    ASSERT_TRUE(std::equal(sample.begin(), sample.end(), reinterpret_cast<const std::byte*>(expected.data)));
  } catch (const Error& error) {
    ASSERT_EQ(refused, error.what());
    ++uses.refused;
    try {
      ASSERT_FALSE(originals.take_undecoded(file, options).frame);
    } catch (const Error&) {
      return;
    }
    return;
  }
  // What is taken without decoding it is taken as it is, and libjpeg has no warning of it.
  const JpegOriginal undecoded = originals.take_undecoded(file, options);
  ASSERT_EQ(undecoded.width, original.width);
  ASSERT_EQ(undecoded.height, original.height);
  if (undecoded.frame) {
    ++uses.undecoded;
    ASSERT_TRUE(original.frame);
    ASSERT_FALSE(original.transcoded);
    ASSERT_TRUE(original.warnings.empty());
    ASSERT_EQ(undecoded.frame->bytes, original.frame->bytes);
    ASSERT_EQ(undecoded.frame->file, original.frame->file);
  }
  if (!original.frame) {
    ++uses.without_frame;
    return;
  }
  ++(original.transcoded ? uses.transcoded : uses.kept);
  const SampleSpec free{DType::u8, Layout::nhwc, 3, 0, 0};
  const Codec codec({CodecSpec::Kind::jpeg, 95}, free, {});
  const FrameSpec of(free.sized(original.height, original.width), original.frame->file);
  std::vector<std::byte> decoded(sample.size());
  ASSERT_NO_THROW(codec.decode(original.frame->bytes, decoded, of));
  ASSERT_EQ(decoded, sample);
  ASSERT_NO_THROW(codec.verify(original.frame->bytes, of));
}

TEST(JpegOriginals, WhateverTheFileTheFrameDecodesToTheSample) {
  Uses uses;
  const std::uint64_t first = testing::first_seed();
  for (std::uint64_t round = first; round < first + testing::rounds(400, 100); ++round) {
    std::mt19937_64 random(round);
    const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
    JpegOptions options;
    options.components = std::array{1, 3, 3, 4}[below(4)];
    options.as_is = below(4) == 0;
    options.factors[0] = std::array<std::array<int, 2>, 4>{{{1, 1}, {2, 1}, {2, 2}, {1, 2}}}[below(4)];
    options.restart_interval = static_cast<int>(below(3));
    options.progressive = below(6) == 0;
    options.arithmetic = below(8) == 0;
    const auto side = [&] { return static_cast<std::uint32_t>(1 + below(40)); };
    auto file =
        below(3) == 0 ? testing::random_jpeg(random, {.most_pixels = 40}) : file_of(options, side(), side());
    if (below(3) == 0) file = turned(std::move(file), static_cast<int>(1 + below(8)));
    for (std::size_t i = below(4); i > 0; --i) {
      const std::size_t at = below(file.size());
      const auto value =
          std::array{std::byte{0xFF}, std::byte{0}, static_cast<std::byte>(random())}[below(3)];
      switch (below(4)) {
        case 0:
          file[at] = value;
          break;
        case 1:
          file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(4), value);
          break;
        case 2:
          file.erase(file.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        default:
          if (below(3) == 0) file.resize(std::max<std::size_t>(2, at));
      }
    }
    if (detect_format(file) != Format::jpeg) continue;
    for (const OnWarning on_warning : {OnWarning::harmless, OnWarning::accept, OnWarning::reject})
      ASSERT_NO_FATAL_FAILURE(expect_sound(file, on_warning, uses))
          << "seed " << round << ", " << options.text();
  }
  RecordProperty(
      "uses", fmt::format("{} refused, {} kept, {} transcoded, {} without frame, {} undecoded", uses.refused,
                          uses.kept, uses.transcoded, uses.without_frame, uses.undecoded));
  for (const int count : {uses.refused, uses.kept, uses.transcoded, uses.without_frame, uses.undecoded})
    EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace shard::image
