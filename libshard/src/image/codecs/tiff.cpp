#include "image/codecs/tiff.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "image/codecs/tiff_file.hpp"
#include "image/pixels/decode_memory.hpp"
#include "jpeg/cmyk.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

// One row of the samples of a block: the high byte of the first sample of each band,
// and the step to the next pixel.
struct SampleRow {
  std::array<const std::uint8_t*, 4> band{};
  std::size_t step = 1;
};

void put_pixel(std::uint8_t* rgb, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  rgb[0] = red;
  rgb[1] = green;
  rgb[2] = blue;
}

// As Pillow's unpackRGBa: rounded down, at most 255; no colour where alpha is 0.
std::uint8_t without_alpha(unsigned value, unsigned alpha) noexcept {
  return alpha == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(std::min(value * 255U / alpha, 255U));
}

class TiffExpander {
 public:
  explicit TiffExpander(const TiffPage& page) : page_(page) {}

  // `count` pixels of row `y` of the blocks that begin at `blocks[plane]`.
  void expand(const std::array<const std::uint8_t*, 4>& blocks, std::uint32_t y, std::uint32_t count,
              std::uint8_t* rgb) {
    if (page_.bits < 8) return expand_packed(blocks[0] + y * page_.block_row_bytes, count, rgb);
    const std::size_t bytes = page_.bits / 8;
    const std::size_t high = std::endian::native == std::endian::little ? bytes - 1 : 0;
    SampleRow row;
    row.step = page_.separate ? bytes : bytes * page_.samples;
    for (unsigned i = 0; i < page_.samples; ++i)
      row.band[i] = (page_.separate ? blocks[i] : blocks[0] + i * bytes) + y * page_.block_row_bytes + high;
    if (page_.bits == 16) look_at(row, count);
    switch (page_.color) {
      case TiffColor::gray:
      case TiffColor::gray_inverted:
        return expand_gray(row, count, rgb);
      case TiffColor::palette:
        for (std::uint32_t x = 0; x < count; ++x, rgb += 3)
          put_color(page_.palette[row.band[0][x * row.step]], rgb);
        return;
      case TiffColor::rgb:
        return page_.associated_alpha ? expand_associated(row, count, rgb) : expand_rgb(row, count, rgb);
      case TiffColor::cmyk:
        return expand_cmyk(row, count, rgb);
    }
  }

  // Warning::few_bits of all that was expanded.
  bool has_few_bits() const noexcept { return is_few_bits(used_); }

 private:
  // Colours of 16 bits, without alpha.
  void look_at(const SampleRow& row, std::uint32_t count) {
    constexpr bool kLittle = std::endian::native == std::endian::little;
    const unsigned colors = page_.color == TiffColor::rgb ? 3 : page_.color == TiffColor::cmyk ? 4 : 1;
    for (unsigned c = 0; c < colors; ++c) {
      const std::uint8_t* const high = row.band[c];
      const std::uint8_t* const low = kLittle ? high - 1 : high + 1;
      for (std::size_t x = 0, at = 0; x < count; ++x, at += row.step)
        used_ |= static_cast<unsigned>(high[at] << 8U | low[at]);
    }
  }
  static void put_color(const std::array<std::uint8_t, 3>& color, std::uint8_t* rgb) {
    put_pixel(rgb, color[0], color[1], color[2]);
  }
  std::uint8_t flipped(std::uint8_t gray) const {
    return page_.color == TiffColor::gray_inverted ? static_cast<std::uint8_t>(255U - gray) : gray;
  }
  void expand_packed(const std::uint8_t* row, std::uint32_t count, std::uint8_t* rgb) const {
    const unsigned most = (1U << page_.bits) - 1U;
    for (std::uint32_t x = 0; x < count; ++x, rgb += 3) {
      const std::size_t bit = std::size_t{x} * page_.bits;
      const unsigned sample = row[bit / 8] >> (8 - page_.bits - bit % 8) & most;
      if (page_.color == TiffColor::palette) {
        put_color(page_.palette[sample], rgb);
      } else {
        const std::uint8_t gray = flipped(static_cast<std::uint8_t>(sample * (255U / most)));
        put_pixel(rgb, gray, gray, gray);
      }
    }
  }
  void expand_gray(const SampleRow& row, std::uint32_t count, std::uint8_t* rgb) const {
    for (std::uint32_t x = 0; x < count; ++x, rgb += 3) {
      std::uint8_t gray = flipped(row.band[0][x * row.step]);
      if (page_.associated_alpha) gray = without_alpha(gray, row.band[1][x * row.step]);
      put_pixel(rgb, gray, gray, gray);
    }
  }
  static void expand_rgb(const SampleRow& row, std::uint32_t count, std::uint8_t* rgb) {
    const auto [red, green, blue, unused] = row.band;
    for (std::size_t x = 0, at = 0; x < count; ++x, at += row.step, rgb += 3)
      put_pixel(rgb, red[at], green[at], blue[at]);
  }
  static void expand_associated(const SampleRow& row, std::uint32_t count, std::uint8_t* rgb) {
    const auto [red, green, blue, alphas] = row.band;
    for (std::size_t x = 0, at = 0; x < count; ++x, at += row.step, rgb += 3) {
      const unsigned alpha = alphas[at];
      put_pixel(rgb, without_alpha(red[at], alpha), without_alpha(green[at], alpha),
                without_alpha(blue[at], alpha));
    }
  }
  static void expand_cmyk(const SampleRow& row, std::uint32_t count, std::uint8_t* rgb) {
    constexpr std::uint32_t kAtOnce = 64;
    std::array<std::uint8_t, 4 * kAtOnce> inverted{};
    for (std::uint32_t x = 0; x < count; x += kAtOnce) {
      const std::uint32_t pixels = std::min(kAtOnce, count - x);
      for (std::uint32_t i = 0; i < pixels; ++i)
        for (std::size_t c = 0; c < 4; ++c)
          inverted[4 * i + c] = static_cast<std::uint8_t>(255U - row.band[c][(x + i) * row.step]);
      jpeg::inverted_cmyk_to_rgb(inverted.data(), rgb + std::size_t{x} * 3, pixels);
    }
  }

  const TiffPage& page_;
  unsigned used_ = 0;  // all samples of 16 bits, or-ed
};

// DecodeOptions::depth, of a block with all its planes. Only of what belongs to the image:
// the rest of a tile may hold anything.
void raise_block(const TiffPage& page, unsigned depth, std::uint32_t rows, std::uint32_t columns,
                 std::uint8_t* samples) {
  constexpr bool kBig = std::endian::native == std::endian::big;
  const std::size_t colors = page.color == TiffColor::rgb ? 3 : page.color == TiffColor::cmyk ? 4 : 1;
  const std::size_t pixel = page.separate ? 1 : page.samples;
  for (std::size_t plane = 0; plane < page.planes(); ++plane)
    for (std::uint32_t row = 0; row < rows; ++row)
      raise_depth({samples + plane * page.block_bytes() + row * page.block_row_bytes, 2 * pixel * columns},
                  kBig, depth, pixel, page.separate ? (plane < colors ? 1 : 0) : colors, "TIFF");
}

}  // namespace

ImageInfo read_tiff_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page) {
  const TiffFile tiff(file, max_pixels, OnWarning::harmless, TiffMode::rgb, page);
  return {Format::tiff, tiff.page().width, tiff.page().height, tiff.page().orientation};
}

StoredImage decode_tiff(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  TiffFile tiff(file, options.max_pixels, options.on_warning, TiffMode::rgb, options.page);
  const TiffPage& page = tiff.page();
  auto share = take_memory(options, rgb_bytes(page.width, page.height, page.orientation) + page.memory_bytes);
  const std::size_t stride = std::size_t{page.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * page.height);
  PixelBuffer samples;
  const std::size_t samples_bytes = page.block_bytes() * page.planes();
  std::fill_n(samples.reserve(samples_bytes), samples_bytes, std::uint8_t{0});
  std::array<const std::uint8_t*, 4> blocks{};
  for (unsigned plane = 0; plane < page.planes(); ++plane)
    blocks[plane] = samples.data() + plane * page.block_bytes();

  TiffExpander expander(page);
  tiff.read_blocks(samples.data(), options.cancel, [&](const TiffBlock& block) {
    if (page.bits == 16) raise_block(page, options.depth, block.rows, block.columns, samples.data());
    for (std::uint32_t row = 0; row < block.rows; ++row)
      expander.expand(blocks, row, block.columns,
                      out + (std::size_t{block.top} + row) * stride + block.left * std::size_t{3});
  });
  StoredImage image{{out, page.width, page.height, stride}, page.orientation, std::move(share), {}};
  if (tiff.warned()) image.warnings.add(Warning::other);
  if (options.depth == 0 && expander.has_few_bits()) image.warnings.add(Warning::few_bits);
  return image;
}

}  // namespace shard::image
