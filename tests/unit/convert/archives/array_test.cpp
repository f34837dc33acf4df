// Arrays of numpy and IDX: headers, images, labels.
#include <gtest/gtest.h>

#include <random>

#include "convert/archives/array.hpp"
#include "shard/image/wide.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

using namespace std::string_view_literals;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::vector<std::byte> npy(const std::string& dictionary, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += static_cast<char>(dictionary.size());
  text += '\0';
  if (version > 1) text += "\0\0"sv;
  return bytes_of(text + dictionary);
}

ArrayHeader shaped(std::vector<std::uint64_t> shape) { return {"|u1", std::move(shape), 0}; }

TEST(NpyHeader, IsReadInEveryVersion) {
  for (const char version : {'\1', '\2', '\3'}) {
    const auto file = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (7, 4, 5, 3), }   \n", version);
    const ArrayHeader header = parse_npy_header(file);
    EXPECT_EQ(header.dtype, "|u1");
    EXPECT_EQ(header.shape, (std::vector<std::uint64_t>{7, 4, 5, 3}));
    EXPECT_EQ(header.data_offset, file.size());
  }
  EXPECT_EQ(
      parse_npy_header(npy("{\"shape\": (3L,), \"fortran_order\": False, \"descr\": \"<i8\"}")).shape.size(),
      1u);
  EXPECT_TRUE(parse_npy_header(npy("{'descr':'<i8','fortran_order':False,'shape':()}")).shape.empty());
}

TEST(NpyHeader, IsRefusedWhereItIsDamagedOrOfAnotherKind) {
  const auto refuse = [](const std::string& dictionary, ErrorCode code, const char* piece) {
    SCOPED_TRACE(dictionary);
    EXPECT_SHARD_ERROR(parse_npy_header(npy(dictionary)), code, piece);
  };
  refuse("{'descr': '|u1', 'fortran_order': True, 'shape': (1,), }", ErrorCode::unsupported,
         "ascontiguousarray");
  refuse("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", ErrorCode::unsupported, "pickled");
  refuse("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (1,), }", ErrorCode::unsupported,
         "structures");
  refuse("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,), }", ErrorCode::corrupt, "whole numbers");
  refuse("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,), }", ErrorCode::corrupt,
         "whole numbers");
  refuse("{'descr': '|u1', 'fortran_order': False}", ErrorCode::corrupt, "lacks");
  refuse("{'descr': '|u1', 'x': 1}", ErrorCode::corrupt, "unknown key");
  refuse("{'descr: |u1", ErrorCode::corrupt, "does not end");
  refuse("", ErrorCode::corrupt, "missing");
  EXPECT_SHARD_ERROR(parse_npy_header(npy("{}", 9)), ErrorCode::unsupported, "version 9");
  EXPECT_SHARD_ERROR(parse_npy_header(bytes_of("PK\3\4 something else")), ErrorCode::corrupt,
                     "not an array of numpy");
  const auto whole = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (7, 4, 5, 3), }");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_SHARD_ERROR(parse_npy_header(std::span(whole).first(size)), ErrorCode::corrupt, "");
}

TEST(IdxHeader, IsReadOrRefused) {
  const auto file = bytes_of("\0\0\x08\3\0\0\0\7\0\0\0\x1C\0\0\0\x1C"sv);
  EXPECT_TRUE(is_idx_of_images(file));
  const ArrayHeader header = parse_idx_header(file);
  EXPECT_EQ(header.shape, (std::vector<std::uint64_t>{7, 28, 28}));
  EXPECT_EQ(header.data_offset, 16u);
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_SHARD_ERROR(parse_idx_header(std::span(file).first(size)), ErrorCode::corrupt, "");
  EXPECT_SHARD_ERROR(parse_idx_header(bytes_of("\0\0\x0D\3 float numbers"sv)), ErrorCode::unsupported,
                     "0x0d");
}

TEST(ArrayHeader, CountsNoMoreThanTheFileHas) {
  EXPECT_EQ(count_elements(shaped({3, 4, 5}), 1, 60), 60u);
  EXPECT_EQ(count_elements(shaped({3, 0, 5}), 1, 0), 0u);
  EXPECT_SHARD_ERROR(count_elements(shaped({3, 4, 5}), 1, 59), ErrorCode::corrupt, "[3, 4, 5]");
  EXPECT_SHARD_ERROR(count_elements(shaped({UINT64_MAX, UINT64_MAX, 2}), 1, 1000), ErrorCode::corrupt,
                     "cut off");
  EXPECT_SHARD_ERROR(count_elements(shaped({3, 4}), 8, 95), ErrorCode::corrupt, "cut off");
}

TEST(ArrayImages, AreTakenAsTheShapeSays) {
  const auto is = [](const ArrayImages& found, std::uint64_t count, std::uint32_t height, std::uint32_t width,
                     unsigned channels, bool planes) {
    return found.count == count && found.height == height && found.width == width &&
           found.channels == channels && found.planes == planes;
  };
  EXPECT_TRUE(is(images_of(shaped({7, 20, 30}), ArrayLayout::automatic), 7, 20, 30, 1, false));
  EXPECT_TRUE(is(images_of(shaped({7, 20, 30, 3}), ArrayLayout::automatic), 7, 20, 30, 3, false));
  EXPECT_TRUE(is(images_of(shaped({7, 4, 20, 30}), ArrayLayout::automatic), 7, 20, 30, 4, true));
  EXPECT_TRUE(is(images_of(shaped({7, 3, 20, 3}), ArrayLayout::nhwc), 7, 3, 20, 3, false));
  EXPECT_TRUE(is(images_of(shaped({7, 3, 20, 3}), ArrayLayout::nchw), 7, 20, 3, 3, true));
  EXPECT_SHARD_ERROR(images_of(shaped({7, 3, 20, 3}), ArrayLayout::automatic), ErrorCode::invalid_argument,
                     "`array_layout`");
  EXPECT_SHARD_ERROR(images_of(shaped({20, 30, 3}), ArrayLayout::automatic), ErrorCode::invalid_argument,
                     "x[None]");
  EXPECT_TRUE(is(images_of(shaped({7, 20, 30, 5}), ArrayLayout::automatic), 7, 20, 30, 5, false));
  EXPECT_TRUE(is(images_of(shaped({7, 13, 20, 30}), ArrayLayout::automatic), 7, 20, 30, 13, true));
  EXPECT_TRUE(is(images_of(shaped({7, 8, 8, 13}), ArrayLayout::automatic), 7, 8, 8, 13, false));
  EXPECT_TRUE(is(images_of(shaped({7, 13, 8, 8}), ArrayLayout::automatic), 7, 8, 8, 13, true));
  EXPECT_TRUE(is(images_of(shaped({20, 30}), ArrayLayout::hw), 1, 20, 30, 1, false));
  EXPECT_TRUE(is(images_of(shaped({20, 30, 3}), ArrayLayout::hwc), 1, 20, 30, 3, false));
  EXPECT_TRUE(is(images_of(shaped({20, 30, 3}), ArrayLayout::chw), 1, 30, 3, 20, true));
  for (const ArrayLayout layout : {ArrayLayout::hw, ArrayLayout::hwc, ArrayLayout::chw})
    EXPECT_SHARD_ERROR(images_of(shaped({7, 20, 30, 3}), layout), ErrorCode::unsupported, "one image");
  EXPECT_SHARD_ERROR(images_of(shaped({20, 30}), ArrayLayout::hwc), ErrorCode::unsupported, "[20, 30]");
  EXPECT_SHARD_ERROR(images_of(shaped({20, 30, 4097}), ArrayLayout::hwc), ErrorCode::unsupported, "4096");
  EXPECT_SHARD_ERROR(images_of(shaped({7, 13, 20, 13}), ArrayLayout::automatic), ErrorCode::invalid_argument,
                     "`array_layout`");
  EXPECT_SHARD_ERROR(images_of(shaped({7, 20, 30, 4097}), ArrayLayout::nhwc), ErrorCode::unsupported,
                     "1 to 4096 channels");
  EXPECT_SHARD_ERROR(images_of(shaped({7, 20}), ArrayLayout::automatic), ErrorCode::unsupported, "expected");
  EXPECT_SHARD_ERROR(images_of(shaped({7, 0, 30}), ArrayLayout::automatic), ErrorCode::corrupt, "no image");
  EXPECT_SHARD_ERROR(images_of(shaped({1, 1u << 20, 1u << 20}), ArrayLayout::automatic),
                     ErrorCode::unsupported, "at most");
  for (const char* dtype : {"<c8", "|b1", "<i4", "<u8", "|u2", "<f1", "|f4", "<U4", ""})
    EXPECT_SHARD_ERROR(images_of({dtype, {7, 20, 30}, 0}, ArrayLayout::automatic), ErrorCode::unsupported,
                       "astype");
  const ArrayImages floats = images_of({">f8", {7, 20, 30}, 0}, ArrayLayout::automatic);
  EXPECT_EQ(floats.element_bytes, 8u);
  EXPECT_EQ(floats.sample_format, 3u);
  EXPECT_TRUE(floats.big_endian);
  EXPECT_EQ(floats.item_bytes(), 4800u);
}

TEST(ArrayImages, OfManyBandsBecomeFilesOfTheirValues) {
  image::Decoder decoder;
  std::mt19937 random(4);
  for (const char* dtype : {"<u2", ">u2", "<f4", ">f4", "|u1"}) {
    for (const std::uint64_t channels : {1U, 2U, 4U, 13U, 4096U}) {
      for (const bool planes : {false, true}) {
        const ArrayImages images = images_of({dtype,
                                              planes ? std::vector<std::uint64_t>{1, channels, 5, 9}
                                                     : std::vector<std::uint64_t>{1, 5, 9, channels},
                                              0},
                                             planes ? ArrayLayout::nchw : ArrayLayout::nhwc);
        std::vector<std::byte> file = tiff_header(images);
        const std::size_t begin = file.size();
        for (std::uint64_t i = 0; i < images.item_bytes(); ++i)
          file.push_back(static_cast<std::byte>(random()));
        const image::WideImage wide = image::decode_wide(decoder, file, {});
        ASSERT_EQ(wide.info.channels, channels) << dtype;
        ASSERT_EQ(wide.info.width, 9u);
        ASSERT_EQ(size_bytes(wide.info.dtype), images.element_bytes);
        for (std::size_t pixel = 0; pixel < 45; ++pixel)
          for (std::size_t c = 0; c < wide.info.channels; ++c)
            for (std::size_t byte = 0; byte < images.element_bytes; ++byte) {
              const std::size_t element = planes ? c * 45 + pixel : pixel * channels + c;
              const std::size_t from = images.big_endian ? images.element_bytes - 1 - byte : byte;
              ASSERT_EQ(wide.data[(pixel * wide.info.channels + c) * images.element_bytes + byte],
                        file[begin + element * images.element_bytes + from])
                  << dtype << " " << channels;
            }
      }
    }
  }
}

TEST(ArrayImages, BecomeFilesOfTheirPixels) {
  std::mt19937 random(3);
  image::Decoder decoder;
  for (const unsigned channels : {1u, 3u, 4u})
    for (const bool planes : {false, true}) {
      if (planes && channels == 1) continue;
      ArrayImages images;
      images.count = 1;
      images.width = 9;
      images.height = 5;
      images.channels = channels;
      images.planes = planes;
      std::vector<std::byte> file = tiff_header(images);
      const std::size_t begin = file.size();
      for (std::uint64_t i = 0; i < images.item_bytes(); ++i)
        file.push_back(static_cast<std::byte>(random()));
      const image::RgbView view = decoder.decode(file, {});
      ASSERT_EQ(view.width, 9u);
      ASSERT_EQ(view.height, 5u);
      for (std::size_t y = 0; y < 5; ++y)
        for (std::size_t x = 0; x < 9; ++x)
          for (std::size_t c = 0; c < 3; ++c) {
            const std::size_t band = channels == 1 ? 0 : c;
            const std::size_t at = planes ? (band * 5 + y) * 9 + x : (y * 9 + x) * channels + band;
            ASSERT_EQ(view.data[y * view.stride_bytes + x * 3 + c],
                      std::to_integer<std::uint8_t>(file[begin + at]));
          }
    }
}

TEST(ArrayLabels, AreLoadedInEitherByteOrder) {
  const auto load = [](const std::string& dtype, std::string_view bytes) {
    return load_integer(dtype, bytes_of(bytes).data());
  };
  EXPECT_EQ(load("|u1", "\xFF"), 255);
  EXPECT_EQ(load("|i1", "\xFF"), -1);
  EXPECT_EQ(load("<i2", "\xFE\xFF"sv), -2);
  EXPECT_EQ(load(">i4", "\xFF\xFF\xFF\xFD"sv), -3);
  EXPECT_EQ(load(">u4", "\0\0\1\0"sv), 256);
  EXPECT_EQ(load("<i8", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv), -1);
  EXPECT_SHARD_ERROR(load("<u8", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv), ErrorCode::corrupt, "64 bits");
  for (const char* dtype : {"<f4", "|b1", "<i3", "O", "", "|i8", "<U4"})
    EXPECT_EQ(integer_bytes(dtype), 0u) << dtype;
}

}  // namespace
}  // namespace shard::convert
