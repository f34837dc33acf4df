#include "shard/image/decode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "image/jpeg.hpp"
#include "image/orient.hpp"
#include "image/png.hpp"
#include "image/stored_image.hpp"
#include "image/webp.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kRowsBetweenPolls = 64;

[[noreturn]] void refuse_unknown(std::span<const std::byte> file) {
  if (file.empty()) throw Error(ErrorCode::corrupt, "the file is empty");
  std::string hex;
  for (const std::byte b : file.first(std::min<std::size_t>(file.size(), 8)))
    hex += fmt::format("{}{:02x}", hex.empty() ? "" : " ", std::to_integer<unsigned>(b));
  throw Error(ErrorCode::unsupported,
              fmt::format("neither JPEG, PNG nor WebP: the file begins with {}", hex));
}

StoredImage decode_jpeg(JpegReader& reader, std::span<const std::byte> file, const DecodeOptions& options,
                        PixelBuffer& pixels) {
  const JpegHeader header = reader.open(file, options);
  const std::size_t stride = std::size_t{header.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * header.height);
  reader.start(Box{0, 0, header.width, header.height});
  for (std::uint32_t row = 0; row < header.height;)
    row += reader.read_rows(out + row * stride, stride, kRowsBetweenPolls);
  reader.finish();
  return {{out, header.width, header.height, stride}, header.orientation};
}

}  // namespace

ImageInfo read_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  switch (detect_format(file)) {
    case Format::jpeg: {
      DecodeOptions options;
      options.max_pixels = max_pixels;
      JpegReader reader;
      const JpegHeader& header = reader.open(file, options);
      return {Format::jpeg, header.stored_width, header.stored_height, header.orientation};
    }
    case Format::png:
      return read_png_info(file, max_pixels);
    case Format::webp:
      return read_webp_info(file, max_pixels);
    case Format::unknown:
      break;
  }
  refuse_unknown(file);
}

std::string decoder_versions() { return jpeg_version() + "; " + png_version() + "; " + webp_version(); }

struct Decoder::Impl {
  JpegReader jpeg;
  PixelBuffer stored;
  PixelBuffer upright;
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

RgbView Decoder::decode(std::span<const std::byte> file, const DecodeOptions& options) {
  StoredImage image;
  switch (detect_format(file)) {
    case Format::jpeg:
      image = decode_jpeg(impl_->jpeg, file, options, impl_->stored);
      break;
    case Format::png:
      image = decode_png(file, options, impl_->stored);
      break;
    case Format::webp:
      image = decode_webp(file, options, impl_->stored);
      break;
    case Format::unknown:
      refuse_unknown(file);
  }
  return turn_upright(image.pixels, image.orientation, impl_->upright);
}

}  // namespace shard::image
