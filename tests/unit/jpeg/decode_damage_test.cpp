// Damaged files and indices: an error, or what libjpeg-turbo makes of the same bytes. Run it with sanitizers.
#include <gtest/gtest.h>

#include <optional>

#include "shard/error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

std::size_t below(std::mt19937_64& random, std::size_t end) { return random() % end; }

std::vector<std::byte> small_file(std::mt19937_64& random) {
  if (below(random, 3) == 0) {
    RandomJpegOptions options;
    options.coefficients = static_cast<Coefficients>(below(random, 3));
    options.most_pixels = 60;
    return random_jpeg(random, options);
  }
  JpegOptions options = random_options(random, 200);
  return random_file(random, options);
}

// Bits, bytes, markers, cuts and copies from `first` on.
void damage(std::mt19937_64& random, std::vector<std::byte>& bytes, std::size_t first) {
  for (std::size_t count = 1 + below(random, 3); count > 0 && bytes.size() > first + 4; --count) {
    const std::size_t at = first + below(random, bytes.size() - first - 2);
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(random, 7)) {
      case 0:
      case 1:
        bytes[at] ^= std::byte{1} << below(random, 8);
        break;
      case 2:
        bytes[at] = static_cast<std::byte>(random());
        break;
      case 3:
        bytes[at] = std::byte{0xFF};
        bytes[at + 1] = static_cast<std::byte>(random());
        break;
      case 4:
        bytes.erase(place,
                    place + 1 + static_cast<std::ptrdiff_t>(below(random, bytes.size() - at - 1)) / 16);
        break;
      case 5:
        bytes.insert(place, 1 + below(random, 3), static_cast<std::byte>(random()));
        break;
      default:
        if (below(random, 4) == 0) bytes.resize(at);
        break;
    }
  }
}

std::optional<JpegPixels> by_libjpeg(std::span<const std::byte> file) {
  try {
    return decode_jpeg(file, true);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_small(const jpeg::Layout& layout) { return std::uint64_t{layout.width} * layout.height < 1U << 20; }

TEST(JpegDamage, DamagedFilesAreErrorsOrWhatLibjpegMakesOfThem) {
  const std::uint64_t count = rounds(4000, 1000);
  std::uint64_t decoded = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    std::vector<std::byte> file = small_file(random);
    damage(random, file, round % 2 == 0 ? 2 : std::min(file.size() - 3, std::size_t{600}));
    try {
      const jpeg::Header header = jpeg::parse_header(file);
      if (!is_small(header.layout)) continue;
      const Indexed image(file);
      const JpegPixels pixels = image.decode();
      // What the index builder accepts, libjpeg decodes without a warning.
      JpegPixels right;
      ASSERT_NO_THROW(right = decode_jpeg(file, image.result.extra_bytes > 0))
          << "seed " << first_seed() + round;
      ASSERT_EQ(pixels, right) << "seed " << first_seed() + round;
      ++decoded;
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported)
          << error.what();
      ++refused;
    }
  }
  EXPECT_GT(decoded, count / 50);
  EXPECT_GT(refused, count / 50);
}

// A shard whose frame was damaged after its index was made.
TEST(JpegDamage, DamagedDataBehindAnIntactIndexAreErrorsOrWhatLibjpegMakesOfThem) {
  const std::uint64_t count = rounds(4000, 1000);
  std::uint64_t decoded = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    Indexed image(small_file(random));
    damage(random, image.file, image.header.data_offset);
    try {
      const JpegPixels pixels = image.decode();
      const std::optional<JpegPixels> right = by_libjpeg(image.file);
      // Behind the last MCU may stand what libjpeg does not read on.
      if (!right.has_value()) continue;
      ASSERT_EQ(pixels, *right) << "seed " << first_seed() + round;
      ++decoded;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(decoded, count / 50);
  EXPECT_GT(refused, count / 50);
}

TEST(JpegDamage, DamagedIndicesAreErrors) {
  const std::uint64_t count = rounds(4000, 1000);
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    Indexed image(small_file(random));
    std::vector<std::byte>& index = image.result.index;
    const std::vector<std::byte> before = index;
    if (below(random, 8) == 0) {
      index.resize(below(random, index.size()));
    } else if (below(random, 2) == 0) {
      index[below(random, index.size())] ^= std::byte{1} << below(random, 8);
    } else {
      for (std::size_t i = 16 + below(random, index.size() - 16); i < index.size() && below(random, 4) != 0;
           ++i)
        index[i] = static_cast<std::byte>(random());
    }
    if (index == before) continue;
    try {
      image.decode();
      FAIL() << "seed " << first_seed() + round;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::corrupt) << error.what();
    }
  }
}

}  // namespace
}  // namespace shard::testing
