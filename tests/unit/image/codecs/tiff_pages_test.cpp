// Pages of TIFF files, and the numbers of 16 bits in PNG and TIFF files.
#include <gtest/gtest.h>

#include <map>

#include "shard/image/preprocess.hpp"
#include "shard/image/wide.hpp"
#include "support/expect_error.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {
namespace {

using image::Warning;

struct GrayPage {
  std::uint32_t side = 0;
  unsigned bits = 8;  // 8 or 16
  unsigned value = 0;
};

void put(Bytes& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// A little-endian TIFF file of gray pages, each of one value.
Bytes tiff_of(const std::vector<GrayPage>& pages) {
  Bytes out;
  put(out, 0x002A4949, 4);
  std::size_t link = out.size();
  put(out, 0, 4);
  const auto set = [&](std::size_t at, std::size_t value) {
    for (std::size_t i = 0; i < 4; ++i) out[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  for (const GrayPage& page : pages) {
    const std::size_t data = out.size();
    const std::size_t pixels = std::size_t{page.side} * page.side;
    for (std::size_t i = 0; i < pixels; ++i) put(out, page.value, page.bits / 8);
    if (out.size() % 2 != 0) put(out, 0, 1);
    const std::map<unsigned, std::size_t> fields{
        {256, page.side}, {257, page.side}, {258, page.bits},
        {259, 1},         {262, 1},         {273, data},
        {277, 1},         {278, page.side}, {279, pixels * page.bits / 8}};
    set(link, out.size());
    put(out, fields.size(), 2);
    for (const auto& [tag, value] : fields) {
      put(out, tag, 2);
      put(out, 4, 2);
      put(out, 1, 4);
      put(out, value, 4);
    }
    link = out.size();
    put(out, 0, 4);
  }
  return out;
}

TEST(Pages, AreDecodedEachByItself) {
  const Bytes file = tiff_of({{3, 8, 10}, {5, 8, 200}, {4, 16, 0x7F00}});
  image::Decoder decoder;
  image::PreprocessOptions options;
  options.squash = image::Size{2, 2};
  options.crop.reset();
  options.dtype = DType::u8;
  image::Preprocessor preprocessor(options);
  std::vector<std::byte> sample(12);
  for (const auto& [page, side, value] : {std::tuple{0U, 3U, 10}, {1U, 5U, 200}, {2U, 4U, 0x7F}}) {
    SCOPED_TRACE(page);
    image::DecodeOptions decode;
    decode.page = page;
    EXPECT_EQ(image::read_info(file, 100, page).width, side);
    EXPECT_EQ(image::read_wide_info(file, 100, page).width, side);
    const Pixels pixels = copy_of(decoder.decode(file, decode));
    EXPECT_EQ(pixels.width, side);
    EXPECT_EQ(int{pixels.rgb.front()}, value);
    preprocessor.run_file(decoder, file, decode, sample);
    EXPECT_EQ(std::to_integer<int>(sample.front()), value);
  }
  EXPECT_EQ(image::image_pages(file), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Pages, ThatAreNotThereAreRefusedAndNeverTheFirstOne) {
  image::Decoder decoder;
  image::Preprocessor preprocessor({});
  std::vector<std::byte> sample(preprocessor.options().sample_spec().size_bytes());
  image::DecodeOptions decode;
  decode.page = 2;
  const Bytes file = tiff_of({{3, 8, 10}, {5, 8, 200}});
  EXPECT_SHARD_ERROR(decoder.decode(file, decode), ErrorCode::not_found, "page 2: the file has 2 pages");
  EXPECT_SHARD_ERROR(image::read_info(file, 100, 2), ErrorCode::not_found, "page 2");
  EXPECT_SHARD_ERROR(image::decode_wide(decoder, file, decode), ErrorCode::not_found, "page 2");
  EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, file, decode, sample), ErrorCode::not_found, "page 2");
  for (const std::string name : {"jpeg_420_33x20.jpg", "png_rgb_8.png", "webp_lossless.webp"}) {
    if (!std::filesystem::exists(golden_path(name))) continue;
    SCOPED_TRACE(name);
    const Bytes other = read_file(golden_path(name));
    EXPECT_SHARD_ERROR(decoder.decode(other, decode), ErrorCode::unsupported,
                       "only TIFF files have several pages");
    EXPECT_SHARD_ERROR(image::read_info(other, 1 << 20, 2), ErrorCode::unsupported, "only TIFF files");
    EXPECT_SHARD_ERROR(image::decode_wide(decoder, other, decode), ErrorCode::unsupported, "only TIFF files");
    EXPECT_SHARD_ERROR(preprocessor.run_file(decoder, other, decode, sample), ErrorCode::unsupported,
                       "only TIFF");
  }
}

TEST(FewBits, AreNotedWhereTheHighestTwoAreNeverSet) {
  image::Decoder decoder;
  for (const auto& [value, few] :
       {std::pair{0U, false}, {1U, true}, {4095U, true}, {16383U, true}, {16384U, false}, {65535U, false}}) {
    SCOPED_TRACE(value);
    decoder.decode(tiff_of({{4, 16, value}}), {});
    EXPECT_EQ(decoder.warnings().has(Warning::few_bits), few);
  }
  decoder.decode(tiff_of({{4, 8, 1}}), {});
  EXPECT_TRUE(decoder.warnings().empty());
  EXPECT_TRUE(image::is_harmless(Warning::few_bits));
}

TEST(Depth, KeepsTheHighestEightOfItsBits) {
  image::Decoder decoder;
  image::DecodeOptions decode;
  for (unsigned depth = 9; depth <= 16; ++depth) {
    SCOPED_TRACE(depth);
    decode.depth = depth;
    const unsigned most = (1U << depth) - 1U;
    for (const unsigned value : {0U, 1U, most / 3, most}) {
      const Pixels pixels = copy_of(decoder.decode(tiff_of({{3, 16, value}}), decode));
      EXPECT_EQ(unsigned{pixels.rgb.back()}, value >> (depth - 8));
    }
    if (depth < 16) {
      EXPECT_SHARD_ERROR(decoder.decode(tiff_of({{3, 16, most + 1}}), decode), ErrorCode::unsupported,
                         "bits do not hold (--depth)");
    }
    EXPECT_EQ(int{copy_of(decoder.decode(tiff_of({{3, 8, 77}}), decode)).rgb.front()}, 77) << "8 bits stay";
  }
}

}  // namespace
}  // namespace shard::testing
