// The kernels decode JPEGs as libjpeg-turbo, bit for bit, whole and in part; and survive any bytes.
//
// SHARD_TEST_PHOTOS=FOLDER: every *.jpg of baseline below it too, and how fast.
#include "cuda/kernels/jpeg.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/bytes.hpp"
#include "jpeg/colour.hpp"
#include "jpeg/frame.hpp"
#include "shard/error.hpp"
#include "support/jpeg/jpeg_batch.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

TEST_F(JpegKernels, EqualLibjpeg) {
  const std::uint64_t count = rounds(12, 2);
  for (std::uint64_t round = 0; round < count; ++round) {
    const std::vector<Indexed> images = random_images(first_seed() + round, 200, round % 3 == 0 ? 300 : 70);
    std::vector<Wanted> wanted;
    for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
    Batch batch(wanted);
    batch.copy();
    batch.launch();
    batch.fetch();
    for (std::size_t i = 0; i < images.size(); ++i) {
      ASSERT_EQ(batch.fault(i), 0U) << "round " << round << ", image " << i;
      ASSERT_EQ(batch.pixels(i), decode_jpeg(images[i].file)) << "round " << round << ", image " << i;
    }
  }
}

TEST_F(JpegKernels, DecodeBoxesAsTheReference) {
  const std::vector<Indexed> images = random_images(first_seed(), 100, 400);
  std::mt19937_64 random(first_seed());
  std::vector<Wanted> wanted;
  for (const Indexed& image : images)
    for (std::uint32_t i = 0; i < 8; ++i) {
      Wanted one{&image, {}, random() % 2 == 0 ? 3U : 0U, random() % 2 == 0 ? 1U : 1 + i};
      jpeg::PixelBox& box = one.box;
      box = {0, 0, one.file().upright_width(), one.file().upright_height()};
      if (random() % 4 != 0) {
        box.left = static_cast<std::uint32_t>(random() % box.width);
        box.top = static_cast<std::uint32_t>(random() % box.height);
        box.width = 1 + static_cast<std::uint32_t>(random() % (box.width - box.left));
        box.height = 1 + static_cast<std::uint32_t>(random() % (box.height - box.top));
      }
      wanted.push_back(one);
    }
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(batch.fault(i), 0U) << i;
    ASSERT_EQ(batch.pixels(i), expected(wanted[i])) << i;
  }
}

// A frame whose header is another one than the head of the shard or the index says.
TEST_F(JpegKernels, SayWhichHeadersDoNotFit) {
  std::vector<Indexed> images = random_images(first_seed() + 5, 60, 100);
  std::mt19937_64 random(first_seed());
  std::vector<bool> damaged;
  for (std::size_t i = 0; i < images.size(); ++i) {
    Indexed& image = images[i];
    const std::size_t sof = [&] {
      for (std::size_t at = 2;; ++at)
        if (image.file[at] == std::byte{0xFF} && (image.file[at + 1] & std::byte{0xFE}) == std::byte{0xC0})
          return at + 4;
    }();
    damaged.push_back(i % 5 != 0);
    if (i % 5 == 1) image.file[sof + 4] ^= std::byte{1};    // width
    if (i % 5 == 2) image.file[0] = std::byte{0};           // SOI
    if (i % 5 == 3) image.result.index[8] ^= std::byte{1};  // where data begin
    if (i % 5 == 4) image.result.index[16 + 4 * image.header.layout.pieces()] ^= std::byte{1};  // predictor
  }
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  for (std::size_t i = 0; i < images.size(); ++i)
    EXPECT_EQ(batch.fault(i), damaged[i] ? static_cast<std::uint32_t>(jpeg::Fault::header) : 0U) << i;
}

TEST_F(JpegKernels, SayWhichImagesAreDamaged) {
  std::vector<Indexed> images = random_images(first_seed() + 77, 400, 120);
  std::mt19937_64 random(first_seed());
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (i % 4 == 0) continue;
    Indexed& image = images[i];
    auto& bytes = i % 4 == 1 ? image.result.index : image.file;
    const std::size_t first = i % 4 == 1 ? 16 : image.header.data_offset;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t k = 0; k < count; ++k)
      bytes[first + random() % (bytes.size() - first)] = static_cast<std::byte>(random());
  }
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    bool good = false;
    JpegPixels right;
    try {
      right = images[i].decode();
      good = true;
    } catch (const Error&) {
      ++damaged;
    }
    EXPECT_TRUE(good || i % 4 != 0) << i;
    if (good) {
      // parse_index() refuses more than the kernels see, never less.
      ASSERT_EQ(batch.fault(i), 0U) << i;
      ASSERT_EQ(batch.pixels(i), right) << i;
    } else if (i % 4 != 1) {
      ASSERT_NE(batch.fault(i), 0U) << i;
    }
  }
  EXPECT_GT(damaged, images.size() / 2);
}

TEST_F(JpegKernels, EqualLibjpegForPhotographs) {
  const char* const folder = std::getenv("SHARD_TEST_PHOTOS");
  if (folder == nullptr) GTEST_SKIP() << "SHARD_TEST_PHOTOS names no folder";
  std::vector<Indexed> images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".jpg") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    try {
      images.emplace_back(std::vector<std::byte>(bytes.begin(), bytes.end()));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::unsupported) << entry.path() << ": " << error.what();
    }
  }
  ASSERT_FALSE(images.empty());
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) wanted.push_back({&image, whole(image)});
  Batch all(wanted);
  all.copy();
  all.launch();
  all.fetch();
  std::uint64_t pixels = 0;
  std::uint64_t different = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(all.fault(i), 0U) << i;
    const JpegPixels right = decode_jpeg(images[i].file, true);
    const JpegPixels ours = all.pixels(i);
    ASSERT_EQ(ours.values.size(), right.values.size());
    pixels += std::uint64_t{right.width} * right.height;
    for (std::size_t k = 0; k < right.values.size(); ++k) different += ours.values[k] != right.values[k];
  }
  EXPECT_EQ(different, 0U);
  std::printf("%zu photographs, %llu pixels, %llu values differ\n", images.size(),
              static_cast<unsigned long long>(pixels), static_cast<unsigned long long>(different));
  std::mt19937_64 random(1);
  for (const std::size_t in_flight : {1U, 2U, 4U, 6U, 8U}) {
    std::vector<std::unique_ptr<Batch>> batches;
    for (std::size_t b = 0; b < in_flight; ++b) {
      std::vector<Wanted> drawn;
      for (int i = 0; i < 256; ++i) {
        const Indexed& image = images[random() % images.size()];
        drawn.push_back({&image, whole(image)});
      }
      batches.push_back(std::make_unique<Batch>(drawn));
    }
    const double with_copies = rate(batches, 256, true);
    std::printf("batches of 256, %zu in flight: %.0f photos/s on the device, %.0f with copies\n", in_flight,
                rate(batches, 256, false), with_copies);
  }
}

}  // namespace
}  // namespace shard::testing
