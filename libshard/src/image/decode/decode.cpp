#include "shard/image/decode.hpp"

#include <fmt/format.h>

#include "image/codecs/gif.hpp"
#include "image/codecs/jpeg.hpp"
#include "image/codecs/optional_formats.hpp"
#include "image/codecs/png.hpp"
#include "image/codecs/tiff.hpp"
#include "image/codecs/tiff_file.hpp"
#include "image/codecs/webp.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/memory_errors.hpp"
#include "image/pixels/orient.hpp"
#include "image/pixels/stored_image.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kRowsBetweenPolls = 64;

[[noreturn]] void refuse_unknown(std::span<const std::byte> file) {
  throw Error(file.empty() ? ErrorCode::corrupt : ErrorCode::unsupported, why_not_decodable(file));
}

void require_page(Format format, std::uint32_t page) {
  if (page != 0 && format != Format::tiff && format != Format::unknown)
    throw Error(ErrorCode::unsupported,
                fmt::format("page {} of {}: only TIFF files have several pages", page, to_string(format)));
}

StoredImage decode_jpeg(JpegReader& reader, std::span<const std::byte> file, const DecodeOptions& options,
                        PixelBuffer& pixels) {
  const JpegHeader header = reader.open(file, options);
  auto share = take_memory(
      options, reader.memory_bytes() + rgb_bytes(header.width, header.height, header.orientation));
  const std::size_t stride = std::size_t{header.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * header.height);
  reader.start(Box{0, 0, header.width, header.height});
  for (std::uint32_t row = 0; row < header.height;)
    row += reader.read_rows(out + row * stride, stride, kRowsBetweenPolls);
  reader.finish();
  return {
      {out, header.width, header.height, stride}, header.orientation, std::move(share), reader.warnings()};
}

}  // namespace

ImageInfo read_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page) {
  const Format format = detect_format(file);
  require_page(format, page);
  switch (format) {
    case Format::jpeg: {
      DecodeOptions options;
      options.max_pixels = max_pixels;
      JpegReader reader;
      const JpegHeader& header = reader.open(file, options);
      return {Format::jpeg, header.stored_width, header.stored_height, header.orientation};
    }
    case Format::png: {
      DecodeOptions options;
      options.max_pixels = max_pixels;
      return PngReader(file, options).info();
    }
    case Format::webp:
      return read_webp_info(file, max_pixels);
    case Format::tiff:
      return read_tiff_info(file, max_pixels, page);
    case Format::gif:
      return read_gif_info(file, max_pixels);
    case Format::bmp:
    case Format::pnm:
    case Format::avif:
    case Format::heic:
    case Format::jxl:
      if (!is_built_in(format)) break;
      return read_optional_info(format, file, max_pixels);
    case Format::unknown:
      break;
  }
  refuse_unknown(file);
}

std::string decoder_versions() {
  return jpeg_version() + "; " + png_version() + "; " + webp_version() + "; " + tiff_version() + "; " +
         gif_version() + optional_versions();
}

std::string decodable_formats() { return "JPEG, PNG, WebP, TIFF, GIF" + optional_names(); }

struct Decoder::Impl {
  JpegReader jpeg;
  PixelBuffer stored;
  RgbView decode(std::span<const std::byte> file, const DecodeOptions& options);

  PixelBuffer upright;
  WarningSet warnings;
  MemoryBudget::Share share;  // of what the view lies in
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

const WarningSet& Decoder::warnings() const noexcept { return impl_->warnings; }

void Decoder::release() noexcept {
  impl_->jpeg.close();
  impl_->stored.trim();
  impl_->upright.trim();
  impl_->share.reset();
}

RgbView Decoder::decode(std::span<const std::byte> file, const DecodeOptions& options) {
  if (options.memory != nullptr) release();  // before it waits for others
  return with_memory_errors([&] { return impl_->decode(file, options); });
}

RgbView Decoder::Impl::decode(std::span<const std::byte> file, const DecodeOptions& options) {
  StoredImage image;
  warnings = {};
  const Format format = detect_format(file);
  require_page(format, options.page);
  switch (format) {
    case Format::jpeg:
      image = decode_jpeg(jpeg, file, options, stored);
      break;
    case Format::png:
      image = decode_png(file, options, stored);
      break;
    case Format::webp:
      image = decode_webp(file, options, stored);
      break;
    case Format::tiff:
      image = decode_tiff(file, options, stored);
      break;
    case Format::gif:
      image = decode_gif(file, options, stored);
      break;
    case Format::bmp:
    case Format::pnm:
    case Format::avif:
    case Format::heic:
    case Format::jxl:
      if (!is_built_in(format)) refuse_unknown(file);
      image = decode_optional(format, file, options, stored);
      break;
    case Format::unknown:
      refuse_unknown(file);
  }
  warnings = image.warnings;
  share = std::move(image.share);
  return turn_upright(image.pixels, image.orientation, upright);
}

}  // namespace shard::image
