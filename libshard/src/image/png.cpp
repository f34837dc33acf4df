#include "image/png.hpp"

#include <fmt/format.h>
#include <spng.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "image/exif.hpp"
#include "image/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

// Text, profiles and unknown chunks may be compressed 1000-fold: bounds on one of them and on all.
constexpr std::size_t kMaxChunkBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxChunkCacheBytes = std::size_t{64} << 20;
constexpr std::uint32_t kRowsBetweenPolls = 64;

struct ContextDeleter {
  void operator()(spng_ctx* context) const noexcept { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, ContextDeleter>;

void check(int status) {
  if (status == 0) return;
  const std::string message = fmt::format("PNG: {}", spng_strerror(status));
  switch (status) {
    case SPNG_EMEM:
    case SPNG_ECHUNK_LIMITS:
    case SPNG_EOVERFLOW:  // width x height exceeds what a machine can address
      throw Error(ErrorCode::resource, message);
    default:
      throw Error(ErrorCode::corrupt, message);
  }
}

Context open(std::span<const std::byte> file, spng_ihdr& header, std::uint64_t max_pixels) {
  Context context(spng_ctx_new(0));
  if (!context) throw Error(ErrorCode::resource, "PNG: no memory for the decoder");
  check(spng_set_crc_action(context.get(), SPNG_CRC_ERROR, SPNG_CRC_ERROR));
  check(spng_set_chunk_limits(context.get(), kMaxChunkBytes, kMaxChunkCacheBytes));
  check(spng_set_png_buffer(context.get(), file.data(), file.size()));
  check(spng_get_ihdr(context.get(), &header));
  check_pixel_bound(header.width, header.height, max_pixels);
  return context;
}

std::uint32_t load_big_endian(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = (value << 8) | std::to_integer<std::uint32_t>(bytes[offset + i]);
  return value;
}

struct Trailer {
  int orientation = 1;
  bool complete = false;
};

// Walks the chunks (length, type, data, CRC) for what libspng leaves open: eXIf may stand behind the pixels,
// and the CRC of IEND is not read.
Trailer walk_chunks(std::span<const std::byte> file) {
  constexpr std::uint32_t kExif = 0x65584966;    // "eXIf"
  constexpr std::uint32_t kEnd = 0x49454E44;     // "IEND"
  constexpr std::uint32_t kEndCrc = 0xAE426082;  // of "IEND" alone
  Trailer trailer;
  for (std::size_t at = 8; file.size() - at >= 12;) {
    const std::size_t length = load_big_endian(file, at);
    if (length > file.size() - at - 12) break;
    const std::uint32_t type = load_big_endian(file, at + 4);
    if (type == kExif) trailer.orientation = exif_orientation(file.subspan(at + 8, length));
    if (type == kEnd) {
      trailer.complete = length == 0 && load_big_endian(file, at + 8) == kEndCrc;
      break;
    }
    at += length + 12;
  }
  return trailer;
}

// A row of samples as the file stores them (big endian, packed) -> RGB.
class RowExpander {
 public:
  RowExpander(spng_ctx* context, const spng_ihdr& header) : header_(header) {
    if (header.color_type != SPNG_COLOR_TYPE_INDEXED) return;
    spng_plte palette{};
    check(spng_get_plte(context, &palette));
    palette_entries_ = palette.n_entries;
    for (std::size_t i = 0; i < palette_.size(); ++i)
      palette_[i] = {palette.entries[i].red, palette.entries[i].green, palette.entries[i].blue};
  }

  void expand(const std::uint8_t* row, std::uint8_t* rgb) const {
    const std::size_t step = header_.bit_depth == 16 ? 2 : 1;  // the high byte comes first
    switch (header_.color_type) {
      case SPNG_COLOR_TYPE_GRAYSCALE:
        if (header_.bit_depth < 8) return expand_packed_gray(row, rgb);
        return expand_gray(row, step, rgb);
      case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return expand_gray(row, 2 * step, rgb);
      case SPNG_COLOR_TYPE_INDEXED:
        return expand_indexed(row, rgb);
      case SPNG_COLOR_TYPE_TRUECOLOR:
        return expand_color(row, 3 * step, step, rgb);
      default:
        return expand_color(row, 4 * step, step, rgb);
    }
  }

 private:
  unsigned packed_sample(const std::uint8_t* row, std::uint32_t x) const {
    const unsigned depth = header_.bit_depth;
    const std::size_t bit = std::size_t{x} * depth;
    return (row[bit / 8] >> (8 - depth - bit % 8)) & ((1u << depth) - 1u);
  }
  static void put(std::uint8_t* rgb, std::uint32_t x, std::uint8_t red, std::uint8_t green,
                  std::uint8_t blue) {
    rgb[std::size_t{x} * 3] = red;
    rgb[std::size_t{x} * 3 + 1] = green;
    rgb[std::size_t{x} * 3 + 2] = blue;
  }
  void expand_packed_gray(const std::uint8_t* row, std::uint8_t* rgb) const {
    const unsigned scale = 255u / ((1u << header_.bit_depth) - 1u);
    for (std::uint32_t x = 0; x < header_.width; ++x) {
      const auto gray = static_cast<std::uint8_t>(packed_sample(row, x) * scale);
      put(rgb, x, gray, gray, gray);
    }
  }
  void expand_gray(const std::uint8_t* row, std::size_t pixel_bytes, std::uint8_t* rgb) const {
    for (std::uint32_t x = 0; x < header_.width; ++x, row += pixel_bytes) put(rgb, x, row[0], row[0], row[0]);
  }
  void expand_color(const std::uint8_t* row, std::size_t pixel_bytes, std::size_t step,
                    std::uint8_t* rgb) const {
    for (std::uint32_t x = 0; x < header_.width; ++x, row += pixel_bytes)
      put(rgb, x, row[0], row[step], row[2 * step]);
  }
  void expand_indexed(const std::uint8_t* row, std::uint8_t* rgb) const {
    for (std::uint32_t x = 0; x < header_.width; ++x) {
      const unsigned index = header_.bit_depth == 8 ? row[x] : packed_sample(row, x);
      if (index >= palette_entries_)
        throw Error(ErrorCode::corrupt,
                    fmt::format("PNG: palette index {} in a palette of {} colours", index, palette_entries_));
      put(rgb, x, palette_[index][0], palette_[index][1], palette_[index][2]);
    }
  }

  spng_ihdr header_;
  std::uint32_t palette_entries_ = 0;
  std::array<std::array<std::uint8_t, 3>, 256> palette_{};
};

class Canceller {
 public:
  explicit Canceller(const std::atomic<bool>* flag) : flag_(flag) {}
  void poll() {
    if (++calls_ % kRowsBetweenPolls == 0 && flag_ != nullptr && flag_->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "PNG: decoding was cancelled");
  }

 private:
  const std::atomic<bool>* flag_;
  std::uint32_t calls_ = kRowsBetweenPolls - 1;
};

// Row by row; the last row's status is SPNG_EOI.
void decode_rows(spng_ctx* context, const RowExpander& expander, std::size_t row_bytes, Canceller cancel,
                 std::uint8_t* out, std::size_t stride, std::uint32_t height) {
  const std::unique_ptr<std::uint8_t[]> row(new std::uint8_t[row_bytes]);
  for (std::uint32_t y = 0; y < height; ++y) {
    cancel.poll();
    const int status = spng_decode_row(context, row.get(), row_bytes);
    if (status != SPNG_EOI || y + 1 != height) check(status);
    expander.expand(row.get(), out + y * stride);
  }
}

// Adam7: seven passes over the whole image, whose samples are kept as stored until the last.
void decode_interlaced(spng_ctx* context, const RowExpander& expander, std::size_t row_bytes,
                       Canceller cancel, std::uint8_t* out, std::size_t stride, std::uint32_t height) {
  PixelBuffer samples;
  std::uint8_t* rows = samples.reserve(row_bytes * height);
  std::fill_n(rows, row_bytes * height, std::uint8_t{0});
  for (int status = 0; status != SPNG_EOI;) {
    cancel.poll();
    spng_row_info info{};
    status = spng_get_row_info(context, &info);  // the end may show here, when the last passes are empty
    if (status == 0) status = spng_decode_row(context, rows + info.row_num * row_bytes, row_bytes);
    if (status != SPNG_EOI) check(status);
  }
  for (std::uint32_t y = 0; y < height; ++y) expander.expand(rows + y * row_bytes, out + y * stride);
}

}  // namespace

ImageInfo read_png_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  spng_ihdr header{};
  const Context context = open(file, header, max_pixels);
  return {Format::png, header.width, header.height, walk_chunks(file).orientation};
}

StoredImage decode_png(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  spng_ihdr header{};
  const Context context = open(file, header, options.max_pixels);
  std::size_t image_bytes = 0;
  check(spng_decoded_image_size(context.get(), SPNG_FMT_RAW, &image_bytes));
  check(spng_decode_image(context.get(), nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE));
  const RowExpander expander(context.get(), header);
  const std::size_t row_bytes = image_bytes / header.height;
  const std::size_t stride = std::size_t{header.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * header.height);
  const auto decode = header.interlace_method == SPNG_INTERLACE_NONE ? decode_rows : decode_interlaced;
  decode(context.get(), expander, row_bytes, Canceller(options.cancel), out, stride, header.height);
  check(spng_decode_chunks(context.get()));  // to the end of the file: cut off, or damaged behind the pixels
  const Trailer trailer = walk_chunks(file);
  if (!trailer.complete)
    throw Error(ErrorCode::corrupt, "PNG: the file is cut off before its IEND chunk ends");
  return {{out, header.width, header.height, stride}, trailer.orientation};
}

std::string png_version() { return fmt::format("libspng {}", spng_version_string()); }

std::vector<std::byte> encode_png(const RgbView& image) {
  if (image.width == 0 || image.height == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} x {} pixels make no PNG", image.width, image.height));
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
  if (!context) throw Error(ErrorCode::resource, "PNG: no memory for the encoder");
  spng_ihdr header{};
  header.width = image.width;
  header.height = image.height;
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  check(spng_set_ihdr(context.get(), &header));
  check(spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1));
  check(spng_encode_image(context.get(), nullptr, 0, SPNG_FMT_PNG,
                          SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE));
  for (std::uint32_t y = 0; y < image.height; ++y) {
    const int status =
        spng_encode_row(context.get(), image.data + y * image.stride_bytes, std::size_t{image.width} * 3);
    if (status != SPNG_EOI || y + 1 != image.height) check(status);
  }
  std::size_t size_bytes = 0;
  int status = 0;
  struct Free {
    void operator()(void* bytes) const noexcept { std::free(bytes); }
  };
  const std::unique_ptr<void, Free> bytes(spng_get_png_buffer(context.get(), &size_bytes, &status));
  check(status);
  const auto* first = static_cast<const std::byte*>(bytes.get());
  return {first, first + size_bytes};
}

}  // namespace shard::image
