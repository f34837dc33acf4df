// Formats whose library a build may lack: BMP, PNM, AVIF, HEIC, JPEG XL. Where it lacks one, its files are
// refused, and the reason says what to install.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <random>

#include "shard/image/file_kind.hpp"
#include "support/expect_error.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

image::Format format_of(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".bmp"    ? image::Format::bmp
         : extension == ".avif" ? image::Format::avif
         : extension == ".heic" ? image::Format::heic
         : extension == ".jxl"  ? image::Format::jxl
                                : image::Format::pnm;
}

bool is_read(image::Format format) {
  return (", " + image::decodable_formats() + ",").find(", " + std::string(image::to_string(format)) + ",") !=
         std::string::npos;
}

// Between two versions of a decoder, or two orders of its arithmetic.
int tolerance_of(image::Format format) {
  return format == image::Format::bmp || format == image::Format::pnm ? 0 : 2;
}

int largest_difference(const Pixels& a, const Pixels& b) {
  int most = a.width == b.width && a.height == b.height ? 0 : 1000;
  for (std::size_t i = 0; most < 1000 && i < a.rgb.size(); ++i)
    most = std::max(most, std::abs(int{a.rgb[i]} - int{b.rgb[i]}));
  return most;
}

std::vector<std::filesystem::path> read_files(const std::string& folder) {
  std::vector<std::filesystem::path> paths = golden_files(folder);
  std::erase_if(paths, [](const auto& path) { return !is_read(format_of(path)); });
  return paths;
}

TEST(OptionalFormats, GivePillowsPixels) {
  ASSERT_GE(golden_files("optional").size(), 50u);
  image::Decoder decoder;
  for (const auto& path : read_files("optional")) {
    SCOPED_TRACE(path.filename().string());
    const Bytes file = read_file(path);
    const Pixels expected = expected_pixels(path);
    EXPECT_LE(largest_difference(copy_of(decoder.decode(file, {})), expected), tolerance_of(format_of(path)));
    const image::ImageInfo info = image::read_info(file, 1 << 20);
    EXPECT_EQ(info.format, format_of(path));
    EXPECT_EQ(info.upright_width(), expected.width);
    EXPECT_EQ(info.upright_height(), expected.height);
    EXPECT_EQ(image::recognize_file(file).group, image::FileKind::Class::decodable);
  }
}

// libavif before 1.1.1 puts tiles into the places of their items.
// The file has two of 64 x 64 pixels side by side, and lists them in "dimg".
TEST(OptionalFormats, TilesOfAGridAreNeverInAnotherPlaceThanTheListOfTheGridSays) {
  if (!is_read(image::Format::avif)) GTEST_SKIP() << "this build reads no AVIF";
  Bytes file = read_file(golden_path("../optional/grid.avif"));
  const Pixels listed = expected_pixels(golden_path("../optional/grid.avif"));
  constexpr std::array kType{std::byte{'d'}, std::byte{'i'}, std::byte{'m'}, std::byte{'g'}};
  const auto dimg = std::search(file.begin(), file.end(), kType.begin(), kType.end());
  ASSERT_NE(dimg, file.end());
  std::swap_ranges(dimg + 8, dimg + 10,
                   dimg + 10);  // behind the type: the grid, the number of tiles, the tiles
  image::Decoder decoder;
  try {
    const Pixels swapped = copy_of(decoder.decode(file, {}));
    Pixels expected = listed;
    for (std::size_t y = 0; y < 64; ++y)
      std::rotate(expected.rgb.begin() + static_cast<std::ptrdiff_t>(y * 384),
                  expected.rgb.begin() + static_cast<std::ptrdiff_t>(y * 384 + 192),
                  expected.rgb.begin() + static_cast<std::ptrdiff_t>(y * 384 + 384));
    EXPECT_LE(largest_difference(swapped, expected), 2);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("wrong places"), std::string::npos) << error.what();
  }
}

TEST(OptionalFormats, RefusalsHaveTheCodeInTheirName) {
  image::Decoder decoder;
  ASSERT_GE(golden_files("optional-refused").size(), 35u);
  for (const auto& path : read_files("optional-refused")) {
    const std::string name = path.filename().string();
    SCOPED_TRACE(name);
    try {
      decoder.decode(read_file(path), {});
      ADD_FAILURE() << "decoded";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), name.substr(0, name.find('-'))) << error.what();
    }
  }
}

TEST(OptionalFormats, AreRefusedWithTheNameOfTheLibraryWhereItIsMissing) {
  image::Decoder decoder;
  for (const auto& path : golden_files("optional")) {
    if (is_read(format_of(path))) continue;
    SCOPED_TRACE(path.filename().string());
    EXPECT_SHARD_ERROR(decoder.decode(read_file(path), {}), ErrorCode::unsupported, "(Debian: lib");
    EXPECT_THROW(image::read_info(read_file(path), 1 << 20), Error);
    EXPECT_EQ(image::recognize_file(read_file(path)).group, image::FileKind::Class::image);
  }
}

TEST(OptionalFormats, HoldHeadersAgainstTheBoundOnPixels) {
  image::Decoder decoder;
  for (const auto& path : read_files("optional")) {
    SCOPED_TRACE(path.filename().string());
    const Pixels expected = expected_pixels(path);
    image::DecodeOptions options;
    options.max_pixels = std::uint64_t{expected.width} * expected.height - 1;
    EXPECT_SHARD_ERROR(decoder.decode(read_file(path), options), ErrorCode::resource,
                       "bound of " + std::to_string(options.max_pixels));
    EXPECT_THROW(image::read_info(read_file(path), options.max_pixels), image::TooManyPixels);
    ++options.max_pixels;
    EXPECT_NO_THROW(decoder.decode(read_file(path), options));
  }
}

TEST(OptionalFormats, TakeMemoryFromTheBudgetAndGiveItBack) {
  image::Decoder decoder;
  for (const auto& path : read_files("optional")) {
    SCOPED_TRACE(path.filename().string());
    const Bytes file = read_file(path);
    const Pixels expected = expected_pixels(path);
    image::MemoryBudget scarce(expected.rgb.size() - 1);
    image::DecodeOptions options;
    options.memory = &scarce;
    EXPECT_SHARD_ERROR(decoder.decode(file, options), ErrorCode::resource, "bytes of memory");
    image::MemoryBudget budget(std::uint64_t{expected.width} * expected.height * 80 + file.size() + 4096);
    options.memory = &budget;
    EXPECT_NO_THROW(decoder.decode(file, options));
    decoder.release();
    EXPECT_THROW(decoder.decode(std::span(file).first(file.size() / 2), options), Error);
    EXPECT_TRUE(budget.take(budget.size_bytes())) << "all of it was given back";
  }
}

TEST(OptionalFormats, StopWhenCancelled) {
  image::Decoder decoder;
  const std::atomic<bool> cancel{true};
  image::DecodeOptions options;
  options.cancel = &cancel;
  for (const auto& path : read_files("optional")) {
    SCOPED_TRACE(path.filename().string());
    EXPECT_SHARD_ERROR(decoder.decode(read_file(path), options), ErrorCode::cancelled, "cancelled");
  }
}

// libjxl as Debian 12 builds it and dav1d print what is wrong with a file, and have no switch for it.
// The others are silent.
TEST(OptionalFormats, SurviveTruncationAndDamage) {
  image::Decoder decoder;
  std::mt19937 random(16);
  image::DecodeOptions options;
  options.max_pixels = 1 << 20;
  for (const char* folder : {"optional", "optional-refused"})
    for (const auto& path : read_files(folder)) {
      SCOPED_TRACE(path.filename().string());
      const Bytes file = read_file(path);
      const image::Format format = format_of(path);
      ::testing::internal::CaptureStderr();
      ::testing::internal::CaptureStdout();
      for (int i = 0; i < 30; ++i) {
        Bytes damaged = file;
        if (i % 3 == 0) damaged.resize(random() % file.size());
        for (int flips = i % 4; flips > 0 && !damaged.empty(); --flips)
          damaged[random() % damaged.size()] ^= std::byte(1 + random() % 255);
        try {
          decoder.decode(damaged, options);
        } catch (const Error& error) {
          EXPECT_NE(error.code(), ErrorCode::io) << error.what();
        }
      }
      EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
      const std::string printed = ::testing::internal::GetCapturedStderr();
      if (format != image::Format::jxl && format != image::Format::avif) {
        EXPECT_EQ(printed, "");
      }
      if (std::string(folder) == "optional") {
        EXPECT_LE(largest_difference(copy_of(decoder.decode(file, {})), expected_pixels(path)),
                  tolerance_of(format_of(path)));
      }
    }
}

}  // namespace
}  // namespace shard::testing
