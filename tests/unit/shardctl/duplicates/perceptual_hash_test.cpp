// Generated photos, and the same ones in another size, quality, brightness or crop.
#include "shardctl/duplicates/perceptual_hash.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "data/jpeg_encoder.hpp"
#include "data/photo.hpp"

namespace shard::ctl {
namespace {

struct Picture {
  std::vector<std::uint8_t> bytes;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  image::RgbView view() const { return {bytes.data(), width, height, std::size_t{width} * 3}; }
};

Picture copy_of(const image::RgbView& view, const image::Box& box) {
  Picture copy{{}, box.width, box.height};
  for (std::uint32_t y = box.top; y < box.top + box.height; ++y) {
    const std::uint8_t* row = view.data + y * view.stride_bytes + std::size_t{box.left} * 3;
    copy.bytes.insert(copy.bytes.end(), row, row + std::size_t{box.width} * 3);
  }
  return copy;
}

Picture decoded(std::span<const std::byte> file) {
  image::Decoder decoder;
  const image::RgbView view = decoder.decode(file, {});
  return copy_of(view, {0, 0, view.width, view.height});
}

constexpr std::uint64_t kPhotos = 25;

const Picture& photo(std::uint64_t index) {
  static const std::vector<Picture> photos = [] {
    std::vector<Picture> made;
    for (std::uint64_t i = 0; i < kPhotos; ++i) {
      const bench::PhotoPlan plan = bench::plan_photo(3, i, 10);
      made.push_back(decoded(bench::encode_photo(plan, bench::render_photo(plan), "")));
    }
    return made;
  }();
  return photos[index];
}

Picture resized(const Picture& picture, image::Size size) {
  image::PreprocessOptions options;
  options.squash = size;
  options.crop = std::nullopt;
  image::Preprocessor preprocessor(options);
  return copy_of(preprocessor.resize_crop(picture.view()), {0, 0, size.width, size.height});
}

Picture cropped(const Picture& picture, double part) {
  const auto width = static_cast<std::uint32_t>(part * picture.width);
  const auto height = static_cast<std::uint32_t>(part * picture.height);
  return copy_of(picture.view(), {(picture.width - width) / 2, (picture.height - height) / 2, width, height});
}

Picture brighter(Picture picture) {
  for (std::uint8_t& value : picture.bytes) value = static_cast<std::uint8_t>(40 + value * 3 / 4);
  return picture;
}

// How many of the photos differ from their variant in at most `bits`.
template <class Variant>
std::uint64_t found(int bits, Variant variant) {
  PerceptualHasher hasher;
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < kPhotos; ++i) {
    const Picture& picture = photo(i);
    const auto before = hasher.hash(picture.view());
    const auto after = hasher.hash(variant(picture).view());
    if (before && after && std::popcount(*before ^ *after) <= bits) ++count;
  }
  return count;
}

TEST(PerceptualHash, OtherSizesAndQualitiesDifferInFewBits) {
  EXPECT_GE(found(4, [](const Picture& p) { return resized(p, {160, 120}); }), kPhotos - 2);
  EXPECT_GE(found(4, [](const Picture& p) { return resized(p, {500, 700}); }), kPhotos - 2);
  EXPECT_GE(found(4, [](const Picture& p) { return decoded(image::encode_jpeg(p.view(), 40)); }),
            kPhotos - 2);
  EXPECT_GE(found(6, brighter), kPhotos - 2);
}

TEST(PerceptualHash, SlightCropsDifferInSomeBits) {
  EXPECT_GE(found(8, [](const Picture& p) { return cropped(p, 0.98); }), kPhotos - 3);
}

TEST(PerceptualHash, DifferentPhotosDifferInMany) {
  PerceptualHasher hasher;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < kPhotos; ++i) hashes.push_back(hasher.hash(photo(i).view()).value());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    EXPECT_EQ(std::popcount(hashes[i]), 32);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_GT(std::popcount(hashes[i] ^ hashes[j]), 8) << i << " and " << j;
  }
}

TEST(PerceptualHash, APictureOfAlmostOneColourHasNone) {
  Picture plain{std::vector<std::uint8_t>(60 * 40 * 3, 128), 60, 40};
  PerceptualHasher hasher;
  EXPECT_FALSE(hasher.hash(plain.view()));
  for (std::size_t i = 0; i < plain.bytes.size(); i += 7) plain.bytes[i] = 129;
  EXPECT_FALSE(hasher.hash(plain.view()));
  std::fill_n(plain.bytes.begin(), plain.bytes.size() / 2, 100);
  EXPECT_TRUE(hasher.hash(plain.view()));
}

TEST(PerceptualHash, APictureOfOnePixelHasNone) {
  const Picture pixel{{200, 10, 90}, 1, 1};
  EXPECT_FALSE(PerceptualHasher().hash(pixel.view()));
}

}  // namespace
}  // namespace shard::ctl
