#include <gtest/gtest.h>

#include <cstdlib>

#include "shard/error.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

// Rows lie further apart than they are long, as those of a part of a larger image.
struct Gradient {
  Gradient(std::uint32_t width, std::uint32_t height)
      : view{nullptr, width, height, std::size_t{width} * 3 + 5} {
    bytes.resize(view.stride_bytes * height, 0xEE);
    for (std::uint32_t y = 0; y < height; ++y)
      for (std::uint32_t x = 0; x < width; ++x) {
        std::uint8_t* pixel = bytes.data() + y * view.stride_bytes + std::size_t{x} * 3;
        pixel[0] = static_cast<std::uint8_t>(x * 255 / width);
        pixel[1] = static_cast<std::uint8_t>(y * 255 / height);
        pixel[2] = static_cast<std::uint8_t>(255 - pixel[0] / 2 - pixel[1] / 2);
      }
    view.data = bytes.data();
  }
  std::vector<std::uint8_t> bytes;
  image::RgbView view;
};

TEST(EncodePng, ComesBackAsItWas) {
  image::Decoder decoder;
  for (const auto& [width, height] : {std::pair{1u, 1u}, {37u, 23u}, {300u, 2u}}) {
    const Gradient gradient(width, height);
    EXPECT_EQ(copy_of(decoder.decode(image::encode_png(gradient.view), {})), copy_of(gradient.view));
  }
}

TEST(EncodeJpeg, ComesBackNearlyAsItWas) {
  image::Decoder decoder;
  const Gradient gradient(61, 47);
  const Pixels original = copy_of(gradient.view);
  for (const int subsampling : {444, 422, 420}) {
    SCOPED_TRACE(subsampling);
    const Pixels decoded = copy_of(decoder.decode(image::encode_jpeg(gradient.view, 95, subsampling), {}));
    ASSERT_EQ(decoded.rgb.size(), original.rgb.size());
    int worst = 0;
    for (std::size_t i = 0; i < original.rgb.size(); ++i)
      worst = std::max(worst, std::abs(int{decoded.rgb[i]} - int{original.rgb[i]}));
    EXPECT_LE(worst, 16);
  }
}

TEST(EncodeJpeg, WritesTheSamplingThatWasAsked) {
  const Gradient gradient(40, 40);
  for (const auto& [subsampling, factors] : {std::pair{444, 0x11}, {422, 0x21}, {420, 0x22}}) {
    const Bytes file = image::encode_jpeg(gradient.view, 80, subsampling);
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    const std::size_t frame = text.find("\xFF\xC0");  // baseline
    ASSERT_NE(frame, std::string_view::npos);
    EXPECT_EQ(std::to_integer<int>(file[frame + 11]), factors);
  }
}

TEST(EncodeJpeg, QualityShapesTheSize) {
  const Gradient gradient(61, 47);
  EXPECT_LT(image::encode_jpeg(gradient.view, 10).size(), image::encode_jpeg(gradient.view, 99).size());
}

TEST(EncodeJpeg, RefusesArgumentsOutOfRange) {
  const Gradient gradient(4, 4);
  const auto message = [&](const image::RgbView& view, int quality, int subsampling) -> std::string {
    try {
      image::encode_jpeg(view, quality, subsampling);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
  };
  EXPECT_NE(message(gradient.view, 0, 420).find("quality 0"), std::string::npos);
  EXPECT_NE(message(gradient.view, 101, 420).find("quality 101"), std::string::npos);
  EXPECT_NE(message(gradient.view, 50, 421).find("subsampling 421"), std::string::npos);
  EXPECT_NE(message({gradient.bytes.data(), 0, 4, 0}, 50, 420).find("0 x 4"), std::string::npos);
  EXPECT_NE(message({gradient.bytes.data(), 70000, 1, 0}, 50, 420).find("70000 x 1"), std::string::npos);
  EXPECT_THROW(image::encode_png({gradient.bytes.data(), 4, 0, 0}), Error);
}

TEST(Decoder, ScalesDownToTheSmallestSizeThatIsLargeEnough) {
  const Gradient gradient(400, 240);
  const Bytes file = image::encode_jpeg(gradient.view, 90);
  image::Decoder decoder;
  const auto height_for = [&](std::uint32_t short_side) {
    image::DecodeOptions options;
    options.fast_min_short_side = short_side;
    return decoder.decode(file, options).height;
  };
  EXPECT_EQ(height_for(0), 240u);
  EXPECT_EQ(height_for(1), 30u);
  EXPECT_EQ(height_for(30), 30u);
  EXPECT_EQ(height_for(31), 60u);
  EXPECT_EQ(height_for(100), 120u);
  EXPECT_EQ(height_for(121), 150u);
  EXPECT_EQ(height_for(211), 240u);
  EXPECT_EQ(height_for(1000), 240u);
}

}  // namespace
}  // namespace shard::testing
