// Images of extreme shapes: the same result as of any other, in bounded memory.
#include <gtest/gtest.h>

#include "image/pixels/limits.hpp"
#include "image/resample/resample_huge.hpp"
#include "support/expect_error.hpp"
#include "support/image/preprocess_support.hpp"

namespace shard::testing {
namespace {

using image::Box;
using image::Filter;
using image::PreprocessOptions;
using image::Preprocessor;
using image::Size;

PreprocessOptions squash_to(Size size, Filter filter) {
  PreprocessOptions options;
  options.squash = size;
  options.crop.reset();
  options.filter = filter;
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  return options;
}

struct Shape {
  Size source;
  Size resized;
  Filter filter;
  bool long_row;     // done without a table of columns
  bool long_column;  // of rows
};

constexpr Shape kShapes[] = {
    {{150'000, 3}, {1, 2}, Filter::bilinear, true, false},
    {{150'001, 1}, {2, 5}, Filter::bilinear, true, false},
    {{280'003, 2}, {2, 2}, Filter::box, true, false},
    {{140'000, 4}, {2, 3}, Filter::bicubic, true, false},
    {{140'001, 2}, {3, 2}, Filter::lanczos, true, false},
    {{3, 150'000}, {4, 1}, Filter::bilinear, false, true},
    {{1, 150'001}, {7, 2}, Filter::bilinear, false, true},
    {{2, 280'003}, {3, 2}, Filter::box, false, true},
    {{5, 140'000}, {2, 2}, Filter::bicubic, false, true},
    {{2, 140'001}, {2, 3}, Filter::lanczos, false, true},
};

TEST(PreprocessHuge, LongRowsAndColumnsGiveThePlainResize) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.source.width) + "x" + std::to_string(shape.source.height) + " " +
                 std::string(image::to_string(shape.filter)));
    ASSERT_EQ(
        image::HugeAxis::is_huge(shape.source.width, shape.resized.width, shape.resized.width, shape.filter),
        shape.long_row);
    ASSERT_EQ(image::HugeAxis::is_huge(shape.source.height, shape.resized.height, shape.resized.height,
                                       shape.filter),
              shape.long_column);
    const Pixels picture = random_picture(shape.source.width, shape.source.height, shape.source.width);
    const Pixels expected = plain_resize_crop(
        picture, shape.resized, Box{0, 0, shape.resized.width, shape.resized.height}, shape.filter);
    Preprocessor preprocessor(squash_to(shape.resized, shape.filter));
    EXPECT_EQ(copy_of(preprocessor.resize_crop(view_of(picture))), expected);
    image::Decoder decoder;
    std::vector<std::byte> sample(expected.rgb.size());
    preprocessor.run_file(decoder, image::encode_png(view_of(picture)), {}, sample);
    EXPECT_TRUE(std::equal(sample.begin(), sample.end(), std::as_bytes(std::span(expected.rgb)).begin()))
        << "row by row from the file";
  }
}

// The way without tables against the one with them, for all that lies between: sizes at random, both axes.
TEST(PreprocessHuge, WithoutTablesIsTheSameAsWithThem) {
  std::mt19937 engine(7);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int i = 0; i < 200; ++i) {
    const auto filter = static_cast<Filter>(i % 4);
    const std::uint32_t source = 1 + random() % (i % 5 == 0 ? 3000 : 200);
    const std::uint32_t resized = 1 + random() % 150;
    SCOPED_TRACE(std::to_string(source) + " to " + std::to_string(resized) + ", " +
                 std::string(image::to_string(filter)));
    const image::HugeAxis axis(source, resized, 0, resized, filter);
    const Pixels row = random_picture(source, 1, random());
    image::HugeRow huge_row;
    huge_row.begin(axis);
    for (std::uint32_t at = axis.source_begin; at < axis.source_end;) {
      const std::uint32_t count = std::min<std::uint32_t>(1 + random() % 50, axis.source_end - at);
      huge_row.push(axis, row.rgb.data() + std::size_t{at} * 3, at, count);
      at += count;
    }
    std::vector<std::uint8_t> resized_row(std::size_t{resized} * 3);
    huge_row.finish(resized_row.data());
    EXPECT_EQ(resized_row, plain_resize_crop(row, {resized, 1}, Box{0, 0, resized, 1}, filter).rgb);

    const Pixels column = random_picture(2, source, random());
    image::HugeColumns huge_columns;
    huge_columns.begin(axis, 6);
    std::vector<std::uint8_t> resized_column(std::size_t{resized} * 6);
    std::uint32_t outputs = 0;
    for (std::uint32_t y = axis.source_begin; y < axis.source_end; ++y) {
      huge_columns.push(axis, y, column.rgb.data() + std::size_t{y} * 6);
      for (; huge_columns.next_done(axis, y); ++outputs) {
        ASSERT_EQ(huge_columns.next_index(), outputs);
        huge_columns.write_next(resized_column.data() + std::size_t{outputs} * 6);
      }
    }
    ASSERT_EQ(outputs, resized);
    EXPECT_EQ(resized_column, plain_resize_crop(column, {2, resized}, Box{0, 0, 2, resized}, filter).rgb);
  }
}

// A PNG of this header and nothing else; the checksum is made here.
Bytes png_header(std::uint32_t width, std::uint32_t height, unsigned depth, unsigned color_type) {
  Bytes file;
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = bytes; i-- > 0;) file.push_back(static_cast<std::byte>(value >> 8 * i));
  };
  put(0x89504E47, 4);
  put(0x0D0A1A0A, 4);
  put(13, 4);
  put(0x49484452, 4);
  put(width, 4);
  put(height, 4);
  put(depth, 1);
  put(color_type, 1);
  put(0, 3);
  std::uint32_t crc = 0xFFFFFFFF;
  for (std::size_t i = 12; i < file.size(); ++i) {
    crc ^= std::to_integer<std::uint32_t>(file[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  put(~crc, 4);
  return file;
}

TEST(PreprocessHuge, MemoryIsBoundedByTheBoundOnPixels) {
  constexpr std::uint32_t kPixels = 20'000'000;
  EXPECT_EQ(image::memory_bound(kPixels), std::uint64_t{16} * kPixels + (std::uint64_t{64} << 20));
  EXPECT_EQ(image::memory_bound(UINT64_MAX), UINT64_MAX);
  // Three rows of 8 bytes a pixel are more than that; the header is enough to know.
  EXPECT_SHARD_ERROR(image::read_info(png_header(kPixels, 1, 16, 6), kPixels), ErrorCode::resource,
                     "decoding takes 480000000 bytes of memory, more than the bound of 387108864");
  EXPECT_SHARD_ERROR(image::read_info(png_header(kPixels, 2, 8, 2), kPixels), ErrorCode::resource,
                     "exceed the bound of 20000000 pixels");
}

}  // namespace
}  // namespace shard::testing
