// The memory that images being decoded may take together.
#include "shard/image/memory_budget.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "support/expect_error.hpp"

namespace shard::image {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> golden_image(const char* name) {
  std::ifstream in(std::filesystem::path(SHARD_TEST_DATA) / "golden/images" / name, std::ios::binary);
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> at(in), end; at != end; ++at)
    bytes.push_back(static_cast<std::byte>(*at));
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

TEST(MemoryBudget, GivesOutNoMoreThanItHas) {
  constexpr std::uint64_t kEach = 40;
  MemoryBudget budget(100);  // two of them
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          const MemoryBudget::Share share = budget.take(kEach);
          const int now = ++inside;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          std::this_thread::yield();
          --inside;
        }
      });
  }
  EXPECT_LE(most, 2);
  EXPECT_GE(most, 1);
  EXPECT_TRUE(budget.take(100)) << "all of it was given back";
}

TEST(MemoryBudget, RefusesWhatIsMoreThanAllOfItAtOnce) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.take(100)) << "an image alone may take all of it";
  EXPECT_FALSE(budget.take(0));
  EXPECT_SHARD_ERROR(budget.take(101), ErrorCode::resource,
                     "takes 101 bytes of memory, and this process may use 100");
}

TEST(MemoryBudget, EndsAWaitThatIsCancelled) {
  MemoryBudget budget(100);
  const MemoryBudget::Share all = budget.take(100);
  std::atomic<bool> cancel{false};
  std::jthread user([&] {
    std::this_thread::sleep_for(20ms);
    cancel = true;
  });
  EXPECT_SHARD_ERROR(budget.take(1, &cancel), ErrorCode::cancelled, "waiting for memory");
}

// What is taken is known from the header, is enough for the pixels that are allocated, and comes back.
TEST(MemoryBudget, IsTakenByImagesThatAreDecodedWhole) {
  PreprocessOptions pixels;
  pixels.resize_short = 8;
  pixels.crop = Size{8, 8};
  Preprocessor preprocessor(pixels);
  Decoder decoder;
  std::vector<std::byte> sample(pixels.sample_spec().size_bytes());
  for (const char* name : {"jpeg_progressive_420.jpg", "jpeg_orientation_6.jpg", "png_rgb_8_interlaced.png",
                           "png_orientation_6.png", "webp_lossless_33x20.webp", "webp_orientation_6.webp",
                           "tiff_rgb_8_separate.tif"}) {
    SCOPED_TRACE(name);
    const std::vector<std::byte> file = golden_image(name);
    const ImageInfo info = read_info(file, DecodeOptions{}.max_pixels);
    const std::uint64_t least = std::uint64_t{info.width} * info.height * 3;
    MemoryBudget scarce(least - 1);
    DecodeOptions options;
    options.memory = &scarce;
    EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, file, options, sample), ErrorCode::resource,
                       "bytes of memory");

    MemoryBudget budget(least * 5 + 1024);
    options.memory = &budget;
    for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(preprocessor.run_file(decoder, file, options, sample));
    EXPECT_TRUE(budget.take(budget.size_bytes())) << "all of it was given back";
    // After an error too.
    const std::span<const std::byte> cut = std::span(file).first(file.size() - file.size() / 4);
    EXPECT_THROW(preprocessor.run_file(decoder, cut, options, sample), Error);
    EXPECT_TRUE(budget.take(budget.size_bytes())) << "all of it was given back";
  }
}

TEST(MemoryBudget, IsHardlyTakenByImagesThatAreDecodedInRows) {
  PreprocessOptions pixels;
  pixels.resize_short = 8;
  pixels.crop = Size{8, 8};
  Preprocessor preprocessor(pixels);
  Decoder decoder;
  std::vector<std::byte> sample(pixels.sample_spec().size_bytes());
  const std::vector<std::byte> file = golden_image("jpeg_420_33x20.jpg");
  MemoryBudget budget(16);
  DecodeOptions options;
  options.memory = &budget;
  EXPECT_NO_THROW(preprocessor.run_file(decoder, file, options, sample));
}

}  // namespace
}  // namespace shard::image
