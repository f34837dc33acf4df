// The kernels make the index of files that have none, bit for bit as the host; and survive any bytes.
//
// SHARD_TEST_PHOTOS=FOLDER: of every *.jpg of baseline below it too, and how fast.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "jpeg/lanes/lane_index.hpp"
#include "shard/error.hpp"
#include "support/jpeg/jpeg_batch.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

using JpegLanes = JpegKernels;

std::vector<Wanted> as_they_are(const std::vector<Indexed>& images) {
  std::vector<Wanted> wanted;
  for (const Indexed& image : images) {
    Wanted one{&image, whole(image)};
    one.plain = true;
    wanted.push_back(one);
  }
  return wanted;
}

// One after the other what lanes of the host say of each file, and its pixels if they find its index.
void expect_equal(const std::vector<Indexed>& images, Batch& batch) {
  jpeg::LaneIndex lanes;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto right = lanes.build(images[i].file, images[i].header);
    ASSERT_EQ(batch.fault(i), static_cast<std::uint32_t>(right.fault)) << i;
    if (right.fault != jpeg::Fault::none) continue;
    ASSERT_EQ(batch.index(i), right.index) << i;
    ASSERT_EQ(batch.pixels(i), decode_jpeg(images[i].file)) << i;
  }
}

TEST_F(JpegLanes, MakeTheIndexOfRandomFiles) {
  const std::uint64_t count = rounds(8, 2);
  for (std::uint64_t round = 0; round < count; ++round) {
    const std::vector<Indexed> images = random_images(first_seed() + round, 200, round % 2 == 0 ? 400 : 70);
    Batch batch(as_they_are(images));
    batch.copy();
    batch.launch();
    batch.fetch();
    expect_equal(images, batch);
  }
}

// Beside images that have theirs.
TEST_F(JpegLanes, MakeSomeIndicesOfABatch) {
  const std::vector<Indexed> images = random_images(first_seed() + 3, 60, 200);
  std::vector<Wanted> wanted = as_they_are(images);
  for (std::size_t i = 0; i < wanted.size(); i += 2) wanted[i].plain = false;
  Batch batch(wanted);
  batch.copy();
  batch.launch();
  batch.fetch();
  for (std::size_t i = 0; i < images.size(); ++i)
    if (batch.fault(i) != static_cast<std::uint32_t>(jpeg::Fault::rest)) {
      ASSERT_EQ(batch.fault(i), 0U) << i;
      ASSERT_EQ(batch.index(i), images[i].result.index) << i;
      ASSERT_EQ(batch.pixels(i), decode_jpeg(images[i].file)) << i;
    }
}

// Several groups of lanes; and components that share their tables, whose lanes do not meet.
TEST_F(JpegLanes, MakeTheIndexOfLargeFiles) {
  std::vector<Indexed> images;
  for (const bool as_is : {false, true}) {
    std::mt19937_64 random(first_seed());
    JpegOptions options;
    options.width = 2000;
    options.height = 900;
    options.quality = 97;
    options.as_is = as_is;
    images.emplace_back(random_file(random, options));
  }
  Batch batch(as_they_are(images));
  batch.copy();
  batch.launch();
  batch.fetch();
  expect_equal(images, batch);
}

// Small enough for compute-sanitizer: compute-sanitizer cuda_tests --gtest_filter='JpegLanes.*Damaged*'
TEST_F(JpegLanes, SayOfDamagedFilesWhatTheHostSays) {
  std::vector<Indexed> images = random_images(first_seed() + 99, 120, 120);
  std::mt19937_64 random(first_seed());
  for (std::size_t i = 0; i < images.size(); ++i) {
    Indexed& image = images[i];
    const std::size_t first = image.header.data_offset;
    const std::size_t count = 1 + random() % 10;
    for (std::size_t k = 0; k < count; ++k)
      image.file[first + random() % (image.file.size() - first)] =
          random() % 3 == 0 ? std::byte{0xFF} : static_cast<std::byte>(random());
    if (i % 5 == 0) image.file.resize(first + random() % (image.file.size() - first));
  }
  Batch batch(as_they_are(images));
  batch.copy();
  batch.launch();
  batch.fetch();
  expect_equal(images, batch);
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < images.size(); ++i) damaged += batch.fault(i) != 0 ? 1 : 0;
  EXPECT_GT(damaged, images.size() / 2);
}

TEST_F(JpegLanes, MakeTheIndexOfPhotographs) {
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
  Batch all(as_they_are(images));
  all.copy();
  all.launch();
  all.fetch();
  for (std::size_t i = 0; i < images.size(); ++i) {
    ASSERT_EQ(all.fault(i), 0U) << i;
    ASSERT_EQ(all.index(i), images[i].result.index) << i;
  }
  std::mt19937_64 random(1);
  for (const std::size_t in_flight : {1U, 4U, 8U}) {
    std::vector<std::unique_ptr<Batch>> batches;
    for (std::size_t b = 0; b < in_flight; ++b) {
      std::vector<Wanted> drawn;
      for (int i = 0; i < 256; ++i) {
        const Indexed& image = images[random() % images.size()];
        drawn.push_back({&image, whole(image)});
        drawn.back().plain = true;
      }
      batches.push_back(std::make_unique<Batch>(drawn));
    }
    const double with_copies = rate(batches, 256, true);
    const double decoding = rate(batches, 256, false);
    for (const auto& batch : batches) batch->index_only();
    std::printf(
        "batches of 256 files without index, %zu in flight: %.0f photos/s on the device, %.0f with copies; "
        "headers and index alone %.0f\n",
        in_flight, decoding, with_copies, rate(batches, 256, false));
  }
}

}  // namespace
}  // namespace shard::testing
