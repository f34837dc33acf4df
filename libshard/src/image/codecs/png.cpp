#include "image/codecs/png.hpp"

#include <fmt/format.h>
#include <spng.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "image/metadata/orientation.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "image/pixels/pixel_buffer.hpp"
#include "image/pixels/wide_pixels.hpp"
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

struct Chunk {
  std::uint32_t type = 0;
  std::span<const std::byte> data;
  std::span<const std::byte> whole;  // length, type, data, CRC
};

constexpr std::uint32_t chunk_type(const char (&name)[5]) {
  std::uint32_t type = 0;
  for (int i = 0; i < 4; ++i) type = type << 8 | static_cast<unsigned char>(name[i]);
  return type;
}

// What libspng leaves open: eXIf and text may stand behind the pixels, and the CRC of IEND is not read.
struct ChunkWalk {
  std::span<const std::byte> exif;         // of several the last one counts
  std::span<const std::byte> raw_profile;  // whole text chunks
  std::span<const std::byte> xmp;
  bool complete = false;
};

bool has_keyword(const Chunk& chunk, std::string_view keyword) {
  const std::string_view text(reinterpret_cast<const char*>(chunk.data.data()), chunk.data.size());
  return text.size() > keyword.size() && text.starts_with(keyword) && text[keyword.size()] == '\0';
}

ChunkWalk walk_chunks(std::span<const std::byte> file) {
  constexpr std::uint32_t kEndCrc = 0xAE426082;  // of "IEND" alone
  ChunkWalk walk;
  for (std::size_t at = 8; at <= file.size() && file.size() - at >= 12;) {
    const std::size_t length = load_big_endian(file, at);
    if (length > file.size() - at - 12) break;
    const Chunk chunk{load_big_endian(file, at + 4), file.subspan(at + 8, length),
                      file.subspan(at, length + 12)};
    switch (chunk.type) {
      case chunk_type("eXIf"):
        walk.exif = chunk.data;
        break;
      case chunk_type("tEXt"):
      case chunk_type("zTXt"):
      case chunk_type("iTXt"):
        if (has_keyword(chunk, "Raw profile type exif")) walk.raw_profile = chunk.whole;
        if (has_keyword(chunk, "XML:com.adobe.xmp")) walk.xmp = chunk.whole;
        break;
      case chunk_type("IEND"):
        walk.complete = length == 0 && load_big_endian(file, at + 8) == kEndCrc;
        return walk;
      default:
        break;
    }
    at += length + 12;
  }
  return walk;
}

// The text of a chunk, decompressed by libspng within its bounds: it is given a file of the header, the chunk
// and the beginning of the pixels. Empty where the chunk is damaged: decoding will say so.
std::string text_of(std::span<const std::byte> file, std::span<const std::byte> chunk) {
  constexpr std::size_t kHeaderBytes = 33;  // signature and IHDR
  constexpr std::array<unsigned char, 12> kPixels{0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xAF, 0x06, 0x1E};
  if (chunk.empty() || file.size() < kHeaderBytes) return {};
  std::vector<std::byte> small(file.begin(), file.begin() + kHeaderBytes);
  small.insert(small.end(), chunk.begin(), chunk.end());
  for (const unsigned char byte : kPixels) small.push_back(static_cast<std::byte>(byte));
  const Context context(spng_ctx_new(0));
  if (!context) throw Error(ErrorCode::resource, "PNG: no memory for the decoder");
  check(spng_set_chunk_limits(context.get(), kMaxChunkBytes, kMaxChunkCacheBytes));
  check(spng_set_png_buffer(context.get(), small.data(), small.size()));
  std::uint32_t count = 1;
  spng_text text{};
  if (spng_get_text(context.get(), &text, &count) != 0 || count != 1 || text.text == nullptr) return {};
  return {text.text, text.length};
}

int orientation_of(std::span<const std::byte> file, const ChunkWalk& walk) {
  std::vector<std::byte> profile;
  std::span<const std::byte> exif = walk.exif;
  if (exif.data() == nullptr && !walk.raw_profile.empty()) {
    profile = decode_raw_profile(text_of(file, walk.raw_profile));
    exif = profile;
  }
  const std::string xmp = text_of(file, walk.xmp);
  return choose_orientation(exif, std::as_bytes(std::span(xmp)));
}

// A row of samples as the file stores them (big endian, packed) -> RGB.
class RowExpander {
 public:
  RowExpander(spng_ctx* context, const spng_ihdr& header) : header_(header) {
    if (header.color_type != SPNG_COLOR_TYPE_INDEXED) return;
    spng_plte palette{};
    check(spng_get_plte(context, &palette));
    for (std::size_t i = 0; i < std::min<std::size_t>(palette.n_entries, palette_.size()); ++i)
      palette_[i] = {palette.entries[i].red, palette.entries[i].green, palette.entries[i].blue};
  }

  // The pixels [first, first + count) of a row.
  void expand(const std::uint8_t* row, std::uint32_t first, std::uint32_t count, std::uint8_t* rgb) const {
    const std::size_t step = header_.bit_depth == 16 ? 2 : 1;  // the high byte comes first
    switch (header_.color_type) {
      case SPNG_COLOR_TYPE_GRAYSCALE:
        if (header_.bit_depth < 8) return expand_packed_gray(row, first, count, rgb);
        return expand_gray(row + first * step, step, count, rgb);
      case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return expand_gray(row + 2 * first * step, 2 * step, count, rgb);
      case SPNG_COLOR_TYPE_INDEXED:
        return expand_indexed(row, first, count, rgb);
      case SPNG_COLOR_TYPE_TRUECOLOR:
        return expand_color(row + 3 * first * step, 3 * step, step, count, rgb);
      default:
        return expand_color(row + 4 * first * step, 4 * step, step, count, rgb);
    }
  }

  // Before whole rows are expanded: DecodeOptions::depth, and which bits are used where it is not given.
  void prepare(std::span<std::uint8_t> rows, unsigned depth) {
    if (header_.bit_depth != 16) return;
    const std::size_t pixel =
        colors() + ((header_.color_type & SPNG_COLOR_TYPE_GRAYSCALE_ALPHA) != 0 ? 1 : 0);
    if (depth != 0) return raise_depth(rows, true, depth, pixel, colors(), "PNG");
    for (std::size_t at = 0; at < rows.size(); at += 2 * pixel)
      for (std::size_t c = 0; c < colors(); ++c)
        used_ |= static_cast<unsigned>(rows[at + 2 * c] << 8U | rows[at + 2 * c + 1]);
  }
  WarningSet warnings() const noexcept {
    WarningSet found;
    if (is_few_bits(used_)) found.add(Warning::few_bits);
    return found;
  }

 private:
  std::size_t colors() const { return (header_.color_type & SPNG_COLOR_TYPE_TRUECOLOR) != 0 ? 3 : 1; }
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
  void expand_packed_gray(const std::uint8_t* row, std::uint32_t first, std::uint32_t count,
                          std::uint8_t* rgb) const {
    const unsigned scale = 255u / ((1u << header_.bit_depth) - 1u);
    for (std::uint32_t x = 0; x < count; ++x) {
      const auto gray = static_cast<std::uint8_t>(packed_sample(row, first + x) * scale);
      put(rgb, x, gray, gray, gray);
    }
  }
  static void expand_gray(const std::uint8_t* row, std::size_t pixel_bytes, std::uint32_t count,
                          std::uint8_t* rgb) {
    for (std::uint32_t x = 0; x < count; ++x, row += pixel_bytes) put(rgb, x, row[0], row[0], row[0]);
  }
  static void expand_color(const std::uint8_t* row, std::size_t pixel_bytes, std::size_t step,
                           std::uint32_t count, std::uint8_t* rgb) {
    for (std::uint32_t x = 0; x < count; ++x, row += pixel_bytes)
      put(rgb, x, row[0], row[step], row[2 * step]);
  }
  void expand_indexed(const std::uint8_t* row, std::uint32_t first, std::uint32_t count,
                      std::uint8_t* rgb) const {
    for (std::uint32_t x = 0; x < count; ++x) {
      const unsigned index = header_.bit_depth == 8 ? row[first + x] : packed_sample(row, first + x);
      put(rgb, x, palette_[index][0], palette_[index][1], palette_[index][2]);
    }
  }

  spng_ihdr header_;
  unsigned used_ = 0;                                       // colours of 16 bits, or-ed
  std::array<std::array<std::uint8_t, 3>, 256> palette_{};  // black behind its end, as in Pillow and libpng
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

// Samples as the file stores them -> elements of this machine, without alpha.
void expand_wide(const spng_ihdr& header, const std::uint8_t* row, std::uint32_t count, const PngKind& kind,
                 PngValues values, std::byte* out) {
  const std::size_t stored =
      kind.channels + ((header.color_type & SPNG_COLOR_TYPE_GRAYSCALE_ALPHA) != 0 ? 1U : 0U);
  const unsigned depth = header.bit_depth;
  if (depth == 8 && stored == kind.channels) {
    std::memcpy(out, row, std::size_t{count} * stored);
    return;
  }
  const unsigned scale = depth < 8 && values == PngValues::color ? 255U / ((1U << depth) - 1U) : 1;
  for (std::size_t x = 0; x < count; ++x) {
    for (std::size_t c = 0; c < kind.channels; ++c) {
      const std::size_t sample = x * stored + c;
      if (kind.sixteen) {
        const auto value = static_cast<std::uint16_t>(row[2 * sample] << 8U | row[2 * sample + 1]);
        std::memcpy(out, &value, 2);
        out += 2;
      } else {
        const std::size_t bit = sample * depth;
        const unsigned value =
            depth < 8 ? (row[bit / 8] >> (8 - depth - bit % 8) & ((1U << depth) - 1U)) * scale : row[sample];
        *out++ = static_cast<std::byte>(value);
      }
    }
  }
}

PngKind kind_of(const spng_ihdr& header) {
  const bool palette = header.color_type == SPNG_COLOR_TYPE_INDEXED;
  const bool gray =
      header.color_type == SPNG_COLOR_TYPE_GRAYSCALE || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
  return {header.bit_depth == 16, palette, gray ? 1U : 3U};
}

// Adam7: seven passes over the whole image, whose samples are kept as stored until the last.
void decode_interlaced(spng_ctx* context, RowExpander& expander, unsigned depth, std::size_t row_bytes,
                       Canceller& cancel, std::uint8_t* out, std::uint32_t width, std::uint32_t height) {
  const std::size_t stride = std::size_t{width} * 3;
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
  expander.prepare({rows, row_bytes * height}, depth);
  for (std::uint32_t y = 0; y < height; ++y)
    expander.expand(rows + y * row_bytes, 0, width, out + y * stride);
}

}  // namespace

struct PngReader::Impl {
  Impl(std::span<const std::byte> bytes, const DecodeOptions& options)
      : file(bytes),
        context(open(bytes, header, options.max_pixels)),
        walk(walk_chunks(bytes)),
        cancel(options.cancel),
        depth(options.depth) {
    check(spng_decoded_image_size(context.get(), SPNG_FMT_RAW, &row_bytes));
    row_bytes /= header.height;
    info = {Format::png, header.width, header.height, orientation_of(file, walk)};
    interlaced = header.interlace_method != SPNG_INTERLACE_NONE;
    check_memory_bound(memory_bytes(), options.max_pixels);
  }

  // libspng holds two rows, and we one.
  std::uint64_t memory_bytes() const {
    const std::uint64_t rgb = std::uint64_t{header.width} * header.height * 3;
    const std::uint64_t rows = (interlaced ? header.height + std::uint64_t{2} : 3) * row_bytes;
    return rows + (interlaced || info.orientation > 1 ? rgb : 0) + (info.orientation > 1 ? rgb : 0);
  }
  void start() {
    check(spng_decode_image(context.get(), nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE));
    expander.emplace(context.get(), header);
    started = true;
  }

  std::span<const std::byte> file;
  spng_ihdr header{};
  Context context;
  ChunkWalk walk;
  Canceller cancel;
  unsigned depth;
  ImageInfo info;
  bool interlaced = false;
  bool started = false;
  std::size_t row_bytes = 0;
  std::uint32_t rows_read = 0;
  PixelBuffer row;
  std::optional<RowExpander> expander;
};

PngReader::PngReader(std::span<const std::byte> file, const DecodeOptions& options)
    : impl_(std::make_unique<Impl>(file, options)) {}
PngReader::~PngReader() = default;

const ImageInfo& PngReader::info() const noexcept { return impl_->info; }
bool PngReader::comes_by_rows() const noexcept { return !impl_->interlaced; }
std::uint64_t PngReader::memory_bytes() const noexcept { return impl_->memory_bytes(); }

void PngReader::read_row() {
  Impl& self = *impl_;
  self.cancel.poll();
  if (!self.started) self.start();
  const int status = spng_decode_row(self.context.get(), self.row.reserve(self.row_bytes), self.row_bytes);
  ++self.rows_read;
  // The last row's status is SPNG_EOI.
  if (status != SPNG_EOI || self.rows_read != self.header.height) check(status);
  self.expander->prepare({self.row.data(), self.row_bytes}, self.depth);
}

void PngReader::expand(std::uint32_t column, std::uint32_t count, std::uint8_t* rgb) const {
  impl_->expander->expand(impl_->row.data(), column, count, rgb);
}

void PngReader::read_interlaced(std::uint8_t* rgb) {
  Impl& self = *impl_;
  self.start();
  decode_interlaced(self.context.get(), *self.expander, self.depth, self.row_bytes, self.cancel, rgb,
                    self.header.width, self.header.height);
  self.rows_read = self.header.height;
}

void PngReader::finish() {
  Impl& self = *impl_;
  while (self.rows_read < self.header.height) read_row();
  // To the end of the file: cut off, or damaged behind the pixels.
  check(spng_decode_chunks(self.context.get()));
  if (!self.walk.complete)
    throw Error(ErrorCode::corrupt, "PNG: the file is cut off before its IEND chunk ends");
}

WarningSet PngReader::warnings() const noexcept {
  return impl_->expander ? impl_->expander->warnings() : WarningSet{};
}

ImageInfo read_png_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  DecodeOptions options;
  options.max_pixels = max_pixels;
  return PngReader(file, options).info();
}

StoredImage decode_png(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  PngReader reader(file, options);
  const ImageInfo& info = reader.info();
  const bool upright_rows = reader.comes_by_rows() && info.orientation <= 1;  // no pixels in memory_bytes()
  auto share = take_memory(
      options, reader.memory_bytes() + (upright_rows ? rgb_bytes(info.width, info.height, 1) : 0));
  const std::size_t stride = std::size_t{info.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * info.height);
  if (reader.comes_by_rows()) {
    for (std::uint32_t y = 0; y < info.height; ++y) {
      reader.read_row();
      reader.expand(0, info.width, out + y * stride);
    }
  } else {
    reader.read_interlaced(out);
  }
  reader.finish();
  return {{out, info.width, info.height, stride}, info.orientation, std::move(share), reader.warnings()};
}

PngKind read_png_kind(std::span<const std::byte> file, std::uint64_t max_pixels) {
  spng_ihdr header{};
  static_cast<void>(open(file, header, max_pixels));
  return kind_of(header);
}

WideImage decode_wide_png(std::span<const std::byte> file, const DecodeOptions& options, PngValues values) {
  spng_ihdr header{};
  const Context context = open(file, header, options.max_pixels);
  const ChunkWalk walk = walk_chunks(file);
  PngKind kind = kind_of(header);
  if (kind.palette) kind.channels = 1;
  const int orientation = orientation_of(file, walk);
  std::size_t row_bytes = 0;
  check(spng_decoded_image_size(context.get(), SPNG_FMT_RAW, &row_bytes));
  row_bytes /= header.height;
  WideImage image;
  image.info = {Format::png, kind.sixteen ? DType::u16 : DType::u8, kind.channels, header.width,
                header.height};
  if (orientation >= 5) std::swap(image.info.width, image.info.height);
  const std::size_t pixel = kind.channels * (kind.sixteen ? 2U : 1U);
  const bool interlaced = header.interlace_method != SPNG_INTERLACE_NONE;
  const std::uint64_t out_bytes = std::uint64_t{header.width} * header.height * pixel;
  const std::uint64_t memory =
      out_bytes * (orientation > 1 ? 2 : 1) + row_bytes * (interlaced ? std::uint64_t{header.height} + 2 : 3);
  check_memory_bound(memory, options.max_pixels);
  image.share = take_memory(options, memory);
  image.data.resize(static_cast<std::size_t>(out_bytes));
  std::vector<std::uint8_t> rows(row_bytes * (interlaced ? header.height : 1));
  Canceller cancel(options.cancel);
  check(spng_decode_image(context.get(), nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE));
  const auto expand = [&](std::uint32_t y, const std::uint8_t* row) {
    expand_wide(header, row, header.width, kind, values,
                image.data.data() + std::size_t{y} * header.width * pixel);
  };
  if (interlaced) {
    for (int status = 0; status != SPNG_EOI;) {
      cancel.poll();
      spng_row_info info{};
      status = spng_get_row_info(context.get(), &info);
      if (status == 0)
        status = spng_decode_row(context.get(), rows.data() + info.row_num * row_bytes, row_bytes);
      if (status != SPNG_EOI) check(status);
    }
    for (std::uint32_t y = 0; y < header.height; ++y) expand(y, rows.data() + y * row_bytes);
  } else {
    for (std::uint32_t y = 0; y < header.height; ++y) {
      cancel.poll();
      const int status = spng_decode_row(context.get(), rows.data(), row_bytes);
      if (status != SPNG_EOI || y + 1 != header.height) check(status);
      expand(y, rows.data());
    }
  }
  check(spng_decode_chunks(context.get()));
  if (!walk.complete) throw Error(ErrorCode::corrupt, "PNG: the file is cut off before its IEND chunk ends");
  turn_wide_upright(image.data, header.width, header.height, pixel, orientation);
  return image;
}

std::string png_version() { return fmt::format("libspng {}", spng_version_string()); }

std::vector<std::byte> encode_png(const RgbView& image) {
  if (image.width == 0 || image.height == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} x {} pixels cannot be stored as PNG", image.width, image.height));
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
