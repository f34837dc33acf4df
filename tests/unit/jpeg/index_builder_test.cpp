#include "jpeg/index_builder.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

// One block of the AC and DC codes of T.81, F.2.2. False: there is no such code.
bool skip_block(jpeg::BitReader<jpeg::FileBytes>& bits, const jpeg::LookUp& dc, const jpeg::LookUp& ac,
                std::uint16_t& predictor) {
  bits.fill();
  std::uint32_t entry = jpeg::look_up(dc.entries, bits.peek16());
  if (entry == 0) return false;
  bits.skip(entry >> 8);
  const std::uint32_t size = entry & 15U;
  if (size != 0) {
    bits.fill();
    const std::uint32_t value = bits.peek32() >> (32 - size);
    bits.skip(size);
    predictor = static_cast<std::uint16_t>(predictor + jpeg::extend(value, size));
  }
  for (std::uint32_t k = 1; k < 64; ++k) {
    bits.fill();
    entry = jpeg::look_up(ac.entries, bits.peek16());
    if (entry == 0) return false;
    bits.skip(entry >> 8);
    bits.skip(entry & 15U);
    if ((entry & 0xFFU) == 0xF0 || (entry & 15U) != 0) {
      k += (entry >> 4) & 15U;
    } else {
      break;
    }
  }
  return true;
}

// Code by code with the kernels' functions, from the first bit on.
std::vector<std::byte> slow_index(std::span<const std::byte> file, const jpeg::Header& header) {
  const jpeg::Layout& layout = header.layout;
  std::vector<jpeg::LookUp> dc(4);
  std::vector<jpeg::LookUp> ac(4);
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    jpeg::make_look_up(header.dc[layout.planes[c].dc], dc[layout.planes[c].dc].entries);
    jpeg::make_look_up(header.ac[layout.planes[c].ac], ac[layout.planes[c].ac].entries);
  }
  jpeg::BitReader<jpeg::FileBytes> bits(jpeg::FileBytes(file), header.data_offset,
                                        static_cast<std::uint32_t>(file.size()));
  bits.go_to(0);
  std::vector<jpeg::EntryPoint> entries;
  std::array<std::uint16_t, 4> predictors{};
  for (std::uint32_t mcu = 0; mcu < layout.mcus(); ++mcu) {
    if (layout.restarts_at(mcu)) {
      EXPECT_TRUE(bits.restart((mcu / layout.restart_interval - 1) % 8));
      predictors = {};
    }
    if (mcu % layout.mcu_columns % 8 == 0) {
      jpeg::EntryPoint& entry = entries.emplace_back();
      entry.position = bits.position();
      std::copy_n(predictors.begin(), layout.components, entry.predictors);
    }
    for (std::uint32_t i = 0; i < layout.blocks_of_mcu; ++i) {
      const std::uint32_t c = layout.blocks[i].component;
      EXPECT_TRUE(skip_block(bits, dc[layout.planes[c].dc], ac[layout.planes[c].ac], predictors[c]));
    }
  }
  EXPECT_FALSE(bits.overrun());
  return jpeg::encode_index(layout, header.data_offset, entries, bits.position());
}

TEST(JpegIndexBuilder, FindsWhatReadingCodeByCodeFinds) {
  const std::uint64_t count = rounds(2000, 300);
  jpeg::IndexBuilder builder;  // one for all, as a conversion has it
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    std::vector<std::byte> file;
    if (round % 2 == 0) {
      file = random_file(random, random_options(random, round % 20 == 0 ? 400 : 70));
    } else {
      RandomJpegOptions options;
      options.coefficients = static_cast<Coefficients>(round % 3);
      options.most_pixels = 150;
      file = random_jpeg(random, options);
    }
    const jpeg::Header header = jpeg::parse_header(file);
    ASSERT_EQ(builder.build(file, header).index, slow_index(file, header)) << "seed " << first_seed() + round;
  }
}

std::vector<std::byte> file_with_restarts() {
  std::mt19937_64 random(4);
  JpegOptions options;
  options.width = options.height = 80;
  options.restart_interval = 7;
  return random_file(random, options);
}

std::size_t find_marker(std::span<const std::byte> file, int marker) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xFF} && file[i + 1] == static_cast<std::byte>(marker)) return i;
  return 0;
}

TEST(JpegIndexBuilder, PredictorsAreZeroBehindARestart) {
  JpegOptions options;
  std::mt19937_64 random(4);
  options.width = options.height = 128;
  options.restart_interval = 16;
  const Indexed image(random_file(random, options));
  const jpeg::Index index = image.index();
  for (std::uint32_t piece = 0; piece < index.size(); piece += 2)
    for (const std::uint16_t predictor : index[piece].predictors) EXPECT_EQ(predictor, 0);
  EXPECT_NE(index[1].predictors[0], 0);
  EXPECT_EQ(index[2].position % 8, 0U);
}

TEST(JpegIndexBuilder, NamesWhatIsWrong) {
  const std::vector<std::byte> good = file_with_restarts();
  const auto expect = [&](ErrorCode code, const char* piece, auto change) {
    Bytes file = good;
    change(file);
    EXPECT_SHARD_ERROR(Indexed{file}, code, piece);
  };
  const auto at = [](Bytes& file, std::size_t i) { return file.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t rst = find_marker(good, 0xD1);
  ASSERT_NE(rst, 0U);
  expect(ErrorCode::corrupt, "without EOI", [](Bytes& f) {
    f.resize(f.size() - 2);
    f.insert(f.end(), {std::byte{0xFF}, std::byte{0xFE}, std::byte{0}, std::byte{2}});
  });
  expect(ErrorCode::corrupt, "ends within its image data", [&](Bytes& f) { f.resize(rst); });
  expect(ErrorCode::corrupt, "restart marker 5", [&](Bytes& f) { f[rst + 1] = std::byte{0xD5}; });
  expect(ErrorCode::corrupt, "bytes before a restart marker",
         [&](Bytes& f) { f.insert(at(f, rst), std::byte{0x11}); });
  expect(ErrorCode::unsupported, "bytes FF FF 00", [&](Bytes& f) {
    f.insert(at(f, rst), {std::byte{0xFF}, std::byte{0xFF}, std::byte{0}});
  });
  expect(ErrorCode::unsupported, "marker 0xda after the scan", [](Bytes& f) {
    f.insert(f.end() - 2, {std::byte{0xFF}, std::byte{0xDA}, std::byte{0}, std::byte{2}});
  });
  expect(ErrorCode::corrupt, "no restart marker", [&](Bytes& f) { f.erase(at(f, rst), f.end() - 2); });
  expect(ErrorCode::corrupt, "the image data end", [](Bytes& f) { f.erase(f.end() - 30, f.end() - 2); });
}

TEST(JpegIndexBuilder, CountsBytesBehindTheLastMcu) {
  std::vector<std::byte> file = file_with_restarts();
  EXPECT_EQ(Indexed(file).result.extra_bytes, 0U);
  file.insert(file.end() - 2, {std::byte{0x11}, std::byte{0x22}});
  const Indexed image(file);
  EXPECT_EQ(image.result.extra_bytes, 2U);
  EXPECT_EQ(image.decode(), decode_jpeg(file, true));
}

}  // namespace
}  // namespace shard::testing
