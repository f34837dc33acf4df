#include <gtest/gtest.h>

#include <algorithm>

#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

using namespace std::string_view_literals;

TEST(Decoder, GivesPillowsPixelsForEveryGoldenImage) {
  const auto paths = golden_files("images");
  ASSERT_GE(paths.size(), 110u);
  image::Decoder decoder;
  for (const auto& path : paths) {
    SCOPED_TRACE(path.filename().string());
    const Pixels expected = expected_pixels(path);
    const Pixels decoded = copy_of(decoder.decode(read_file(path), {}));
    ASSERT_EQ(decoded.width, expected.width);
    ASSERT_EQ(decoded.height, expected.height);
    const auto [at, other] = std::mismatch(decoded.rgb.begin(), decoded.rgb.end(), expected.rgb.begin());
    EXPECT_EQ(at, decoded.rgb.end()) << "first difference at byte " << at - decoded.rgb.begin() << ": "
                                     << int{*at} << " instead of " << int{*other};
  }
}

TEST(Decoder, KeepsNothingOfTheImageBefore) {
  auto paths = golden_files("images");
  std::reverse(paths.begin(), paths.end());
  image::Decoder decoder;
  const Bytes damaged = read_file(golden_path("../refused/corrupt-jpeg-early-marker.jpg"));
  for (const auto& path : paths) {
    SCOPED_TRACE(path.filename().string());
    EXPECT_ANY_THROW(decoder.decode(damaged, {}));
    EXPECT_EQ(copy_of(decoder.decode(read_file(path), {})), expected_pixels(path));
  }
}

TEST(Decoder, MovesWithItsState) {
  image::Decoder first;
  const Bytes file = read_file(golden_path("jpeg_420_33x20.jpg"));
  first.decode(file, {});
  image::Decoder second = std::move(first);
  EXPECT_EQ(copy_of(second.decode(file, {})), read_ppm(golden_path("jpeg_420_33x20.jpg.ppm")));
}

TEST(ReadInfo, SaysTheUprightSizeOfEveryGoldenImage) {
  for (const auto& path : golden_files("images")) {
    SCOPED_TRACE(path.filename().string());
    const Pixels expected = expected_pixels(path);
    const image::ImageInfo info = image::read_info(read_file(path), 1 << 20);
    EXPECT_EQ(info.upright_width(), expected.width);
    EXPECT_EQ(info.upright_height(), expected.height);
    const std::string extension = path.extension().string();
    EXPECT_EQ(info.format, extension == ".jpg"   ? image::Format::jpeg
                           : extension == ".png" ? image::Format::png
                           : extension == ".tif" ? image::Format::tiff
                           : extension == ".gif" ? image::Format::gif
                                                 : image::Format::webp);
  }
}

TEST(ReadInfo, SaysStoredSizeAndOrientation) {
  for (const std::string name :
       {"jpeg_orientation_6.jpg", "webp_orientation_6.webp", "tiff_orientation_6.tif"}) {
    SCOPED_TRACE(name);
    const image::ImageInfo info = image::read_info(read_file(golden_path(name)), 1 << 20);
    const bool tiff = info.format == image::Format::tiff;
    EXPECT_EQ(info.width, tiff ? 21u : 33u);
    EXPECT_EQ(info.height, tiff ? 14u : 20u);
    EXPECT_EQ(info.orientation, 6);
    EXPECT_EQ(info.upright_width(), info.height);
  }
}

TEST(DetectFormat, LooksAtTheContent) {
  const auto detect = [](std::string_view text) {
    return image::detect_format(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(detect("\xFF\xD8\xFF\xE0"), image::Format::jpeg);
  EXPECT_EQ(detect("\x89PNG\r\n\x1A\n"), image::Format::png);
  EXPECT_EQ(detect("RIFF....WEBPVP8 "), image::Format::webp);
  EXPECT_EQ(detect("II*\0\x08\0\0\0"sv), image::Format::tiff);
  EXPECT_EQ(detect("MM\0+\0\x08\0\0"sv), image::Format::tiff);
  EXPECT_EQ(detect("II*\0\x10\0\0\0CR\2\0"sv), image::Format::unknown);  // a Canon raw file
  EXPECT_EQ(detect("\xFF\xD8"), image::Format::unknown);
  EXPECT_EQ(detect("RIFF....WAVE"), image::Format::unknown);
  EXPECT_EQ(detect(""), image::Format::unknown);
}

TEST(DecoderVersions, NamesTheLibraries) {
  const std::string versions = image::decoder_versions();
  EXPECT_TRUE(versions.starts_with("libjpeg-turbo ")) << versions;
  EXPECT_NE(versions.find("; libspng 0."), std::string::npos) << versions;
  EXPECT_NE(versions.find("; libwebp 1."), std::string::npos) << versions;
  EXPECT_NE(versions.find("; libtiff 4."), std::string::npos) << versions;
  EXPECT_NE(versions.find("; giflib 5."), std::string::npos) << versions;
}

}  // namespace
}  // namespace shard::testing
