// What must not decode, and with which code and words it is refused.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>

#include "shard/error.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

struct Refusal {
  ErrorCode code;
  std::string message;
};

std::optional<Refusal> refusal_of(image::Decoder& decoder, std::span<const std::byte> file,
                                  const image::DecodeOptions& options = {}) {
  try {
    decoder.decode(file, options);
    return std::nullopt;
  } catch (const Error& error) {
    return Refusal{error.code(), error.what()};
  }
}

void expect_refusal(const std::string& name, std::string_view words) {
  SCOPED_TRACE(name);
  image::Decoder decoder;
  const auto refusal = refusal_of(decoder, read_file(golden_path("../refused/" + name)));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(to_string(refusal->code), name.substr(0, name.find('-')));
  EXPECT_NE(refusal->message.find(words), std::string::npos) << refusal->message;
}

TEST(Decoder, RefusesEveryFileOfTheRefusedFolderWithTheCodeInItsName) {
  const auto paths = golden_files("refused");
  ASSERT_GE(paths.size(), 25u);
  image::Decoder decoder;
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    SCOPED_TRACE(name);
    const auto refusal = refusal_of(decoder, read_file(path));
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(to_string(refusal->code), name.substr(0, name.find('-'))) << refusal->message;
  }
}

TEST(Decoder, SaysWhyItRefuses) {
  expect_refusal("corrupt-empty.jpg", "is empty");
  expect_refusal("corrupt-jpeg-no-end.jpg", "Premature end of JPEG file");
  expect_refusal("corrupt-jpeg-restart-out-of-turn.jpg", "found marker 0xd5 instead of RST2");
  expect_refusal("corrupt-png-checksum-of-exif.png", "checksum");
  expect_refusal("corrupt-webp-cut.webp", "cut off after");
  expect_refusal("resource-jpeg-bomb.jpg", "65500 x 65500 pixels exceed the bound of 178956970");
  expect_refusal("resource-jpeg-94-scans.jpg", "more than 64 scans");
  expect_refusal("resource-webp-bomb.webp", "16384 x 16384 pixels exceed the bound");
  expect_refusal("corrupt-gif-no-image.gif", "has no image");
  expect_refusal("corrupt-gif-no-pixels.gif", "no pixels");
  expect_refusal("resource-gif-frame-bomb.gif", "65535 x 65535 pixels exceed the bound");
  expect_refusal("resource-gif-screen-bomb.gif", "65535 x 65535 pixels exceed the bound");
  expect_refusal("corrupt-tiff-cut.tif", "TIFF: ");
  expect_refusal("corrupt-tiff-header-only.tif", "TIFF: ");
  expect_refusal("corrupt-tiff-no-palette.tif", "Colormap");
  expect_refusal("corrupt-tiff-no-palette-8.tif", "without a palette");
  expect_refusal("resource-tiff-bomb.tif", "21 x 2147483647 pixels exceed the bound");
  expect_refusal("resource-tiff-tile-bomb.tif", "tiles of 268435456 x 16 pixels in an image of 21 x 14");
  expect_refusal("unsupported-tiff-float.tif", "samples of 16 bits that are floating-point numbers");
  expect_refusal("unsupported-tiff-signed.tif", "signed integers");
  expect_refusal("unsupported-tiff-5-bands.tif", "5 bands");
  expect_refusal("unsupported-tiff-lab.tif", "CIE Lab");
  expect_refusal("unsupported-tiff-ycbcr.tif", "YCbCr without JPEG");
  expect_refusal("unsupported-tiff-preview.tif", "a preview of another one");
  expect_refusal("unsupported-tiff-dng.tif", "a camera raw file");
  expect_refusal("unsupported-tiff-lzma.tif", "LZMA");
  expect_refusal("unsupported-tiff-4-bits-rgb.tif", "3 bands of 4 bits");
  expect_refusal("unsupported-photoshop.jpg", "is a Photoshop image; convert it to PNG or JPEG first");
  expect_refusal("unsupported-text.png", "is a text file, not an image");
  expect_refusal("unsupported-jpeg-12-bits.jpg", "precision 12");
  expect_refusal("unsupported-jpeg-2-components.jpg", "2 colour components");
  expect_refusal("unsupported-jpeg-lossless.jpg", "0xc3");
}

TEST(Decoder, HoldsEveryHeaderAgainstTheBoundOnPixels) {
  image::Decoder decoder;
  for (const auto& path : golden_files("images")) {
    SCOPED_TRACE(path.filename().string());
    const Bytes file = read_file(path);
    const Pixels expected = expected_pixels(path);
    const std::uint64_t pixels = std::uint64_t{expected.width} * expected.height;
    image::DecodeOptions options;
    options.max_pixels = pixels;
    EXPECT_FALSE(refusal_of(decoder, file, options).has_value());
    options.max_pixels = pixels - 1;
    const auto refusal = refusal_of(decoder, file, options);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->code, ErrorCode::resource);
    EXPECT_NE(refusal->message.find("bound of " + std::to_string(pixels - 1)), std::string::npos)
        << refusal->message;
    EXPECT_THROW(image::read_info(file, pixels - 1), Error);
  }
}

TEST(Decoder, StopsWhenCancelled) {
  image::Decoder decoder;
  const std::atomic<bool> cancel{true};
  image::DecodeOptions options;
  options.cancel = &cancel;
  for (const char* name : {"jpeg_420_33x20.jpg", "jpeg_progressive_420.jpg", "jpeg_cmyk_adobe_0.jpg",
                           "png_rgb_8.png", "png_rgb_8_interlaced.png", "webp_lossy_33x20.webp",
                           "tiff_rgb_8_strips.tif", "tiff_rgb_8_separate_tiles.tif", "gif_interlaced.gif"}) {
    SCOPED_TRACE(name);
    const Bytes file = read_file(golden_path(name));
    const auto refusal = refusal_of(decoder, file, options);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->code, ErrorCode::cancelled);
    EXPECT_NE(refusal->message.find("cancelled"), std::string::npos);
    EXPECT_FALSE(refusal_of(decoder, file).has_value()) << "the decoder is to be used again";
  }
}

// Every length for some, some lengths for every file. Bytes behind the end of the image are no part of it.
// TIFF has pixels and directory anywhere, and GIF further frames, so what is cut off may be of no importance;
// then the pixels are there.
TEST(Decoder, FindsEveryTruncation) {
  image::Decoder decoder;
  for (const auto& path : golden_files("images")) {
    const std::string name = path.filename().string();
    if (name == "jpeg_bytes_behind_the_end.jpg") continue;
    SCOPED_TRACE(name);
    const Bytes file = read_file(path);
    const bool each =
        name.find("17x13") != std::string::npos || name.find("progressive_420") != std::string::npos;
    for (std::size_t size = file.size() - 1; size >= 12;
         size = each ? size - 1 : size - std::min<std::size_t>(size, 41)) {
      const auto refusal = refusal_of(decoder, std::span(file).first(size));
      if (!refusal && (path.extension() == ".tif" || path.extension() == ".gif")) {
        ASSERT_EQ(copy_of(decoder.decode(std::span(file).first(size), {})), expected_pixels(path))
            << "cut to " << size;
        continue;
      }
      ASSERT_TRUE(refusal.has_value()) << "cut to " << size << " of " << file.size();
      ASSERT_EQ(refusal->code, ErrorCode::corrupt) << "cut to " << size << ": " << refusal->message;
    }
  }
}

// libtiff and others have handlers that print: what they say belongs into the error.
TEST(Decoder, PrintsNothing) {
  image::Decoder decoder;
  std::mt19937 random(4);
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  for (const char* folder : {"images", "refused"})
    for (const auto& path : golden_files(folder)) {
      const Bytes file = read_file(path);
      refusal_of(decoder, file);
      for (int i = 0; i < 20 && !file.empty(); ++i) {
        Bytes damaged = file;
        damaged[random() % file.size()] ^= std::byte(1 + random() % 255);
        image::DecodeOptions options;
        options.max_pixels = 1 << 20;
        refusal_of(decoder, damaged, options);
      }
    }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Damage may leave a valid image of other pixels; it never crashes, and the decoder stays usable.
TEST(Decoder, SurvivesDamagedBytes) {
  image::Decoder decoder;
  std::mt19937 random(11);
  image::DecodeOptions options;
  options.max_pixels = 1 << 20;
  std::size_t refused = 0;
  std::size_t tried = 0;
  for (const auto& path : golden_files("images")) {
    SCOPED_TRACE(path.filename().string());
    const Bytes file = read_file(path);
    for (int i = 0; i < 60; ++i, ++tried) {
      Bytes damaged = file;
      for (int flips = 0; flips <= i % 4; ++flips)
        damaged[random() % file.size()] ^= std::byte(1 + random() % 255);
      refused += refusal_of(decoder, damaged, options).has_value() ? 1 : 0;
    }
    EXPECT_EQ(copy_of(decoder.decode(file, {})), expected_pixels(path));
  }
  EXPECT_GT(refused, tried / 4);
}

}  // namespace
}  // namespace shard::testing
