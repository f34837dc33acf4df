#include "image/codecs/avif.hpp"

#include <avif/avif.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "image/codecs/avif_grid.hpp"
#include "image/codecs/image_formats.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

struct AvifDeleter {
  void operator()(avifDecoder* decoder) const noexcept { avifDecoderDestroy(decoder); }
};
using AvifDecoder = std::unique_ptr<avifDecoder, AvifDeleter>;

[[noreturn]] void throw_avif_error(avifResult result, const avifDecoder& decoder) {
  throw Error(result == AVIF_RESULT_OUT_OF_MEMORY ? ErrorCode::resource
              : result == AVIF_RESULT_NOT_IMPLEMENTED || result == AVIF_RESULT_NO_CODEC_AVAILABLE
                  ? ErrorCode::unsupported
                  : ErrorCode::corrupt,
              fmt::format("AVIF: {}{}{}", avifResultToString(result),
                          decoder.diag.error[0] == '\0' ? "" : ": ", decoder.diag.error));
}

// A file whose boxes have been read. `most_pixels` is also dav1d's bound on a frame.
AvifDecoder parse_avif(std::span<const std::byte> file, std::uint32_t most_pixels) {
  if (avifCodecName(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE) == nullptr)
    throw Error(ErrorCode::unsupported,
                "AVIF: libavif was built without dav1d; convert it to PNG or JPEG first");
  AvifDecoder decoder(avifDecoderCreate());
  if (!decoder) throw Error(ErrorCode::resource, "AVIF: no memory for the decoder");
  decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
  decoder->maxThreads = 1;
  decoder->imageSizeLimit = most_pixels;
  decoder->ignoreExif = AVIF_TRUE;
  decoder->ignoreXMP = AVIF_TRUE;
  decoder->strictFlags =
      AVIF_STRICT_ENABLED & ~static_cast<avifStrictFlags>(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  avifResult result =
      avifDecoderSetIOMemory(decoder.get(), reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  if (result == AVIF_RESULT_OK) result = avifDecoderParse(decoder.get());
  if (result != AVIF_RESULT_OK) throw_avif_error(result, *decoder);
  return decoder;
}

// Twice: first with libavif's own bound, so that an image that exceeds ours can be told from a damaged one.
AvifDecoder open_avif(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const AvifDecoder first = parse_avif(file, AVIF_DEFAULT_IMAGE_SIZE_LIMIT);
#if AVIF_VERSION < 1010100
  if (!has_grids_in_item_order(file))
    throw Error(ErrorCode::unsupported, fmt::format("AVIF: a grid whose tiles libavif {} would put into "
                                                    "wrong places, which 1.1.1 and newer does not; "
                                                    "convert it to PNG or JPEG first",
                                                    avifVersion()));
#endif
  check_pixel_bound(first->image->width, first->image->height, max_pixels);
  return parse_avif(
      file, static_cast<std::uint32_t>(std::min<std::uint64_t>(max_pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT)));
}

// Turned anticlockwise first, then mirrored.
int avif_orientation(const avifImage& image) noexcept {
  const unsigned angle = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle & 3U : 0;
  constexpr std::array<int, 4> kTurned{1, 8, 3, 6};
  if ((image.transformFlags & AVIF_TRANSFORM_IMIR) == 0) return kTurned[angle];
#if AVIF_VERSION >= 1000000
  const unsigned axis = image.imir.axis & 1U;
#else
  const unsigned axis = image.imir.mode & 1U;
#endif
  constexpr std::array<std::array<int, 2>, 4> kMirrored{{{4, 2}, {5, 7}, {2, 4}, {7, 5}}};
  return kMirrored[angle][axis];
}

// Besides the RGB pixels: planes as decoded and as put together, and the pixels with alpha.
std::uint64_t avif_decoder_bytes(const avifDecoder& decoder) {
  const std::uint64_t planes = decoder.image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? 1 : 3;
  const std::uint64_t alpha = decoder.alphaPresent != AVIF_FALSE ? 1 : 0;
  const std::uint64_t sample = decoder.image->depth > 8 ? 2 : 1;
  return std::uint64_t{decoder.image->width} * decoder.image->height *
         (2 * (planes + alpha) * sample + alpha * 4 + 2);
}

}  // namespace

ImageInfo read_avif_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const AvifDecoder decoder = open_avif(file, max_pixels);
  return {Format::avif, decoder->image->width, decoder->image->height, avif_orientation(*decoder->image)};
}

StoredImage decode_avif(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  check_not_cancelled(options);
  const AvifDecoder decoder = open_avif(file, options.max_pixels);
  const std::uint32_t width = decoder->image->width;
  const std::uint32_t height = decoder->image->height;
  const int orientation = avif_orientation(*decoder->image);
  auto share = take_memory(options, rgb_bytes(width, height, orientation) + avif_decoder_bytes(*decoder));
  avifResult result = avifDecoderNextImage(decoder.get());
  if (result != AVIF_RESULT_OK) throw_avif_error(result, *decoder);
  check_not_cancelled(options);
  if (decoder->image->width != width || decoder->image->height != height)
    throw Error(ErrorCode::corrupt,
                fmt::format("AVIF: {} x {} pixels instead of {} x {}", decoder->image->width,
                            decoder->image->height, width, height));
  const std::size_t stride = std::size_t{width} * 3;
  std::uint8_t* out = pixels.reserve(stride * height);
  const bool alpha = decoder->image->alphaPlane != nullptr;
  PixelBuffer with_alpha;
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, decoder->image);
  rgb.depth = 8;
  rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.rowBytes = width * (alpha ? 4 : 3);
  rgb.pixels = alpha ? with_alpha.reserve(std::size_t{rgb.rowBytes} * height) : out;
  result = avifImageYUVToRGB(decoder->image, &rgb);
  if (result != AVIF_RESULT_OK) throw_avif_error(result, *decoder);
  if (alpha)
    for (std::size_t i = 0; i < std::size_t{width} * height; ++i)
      std::copy_n(rgb.pixels + i * 4, 3, out + i * 3);
  return {{out, width, height, stride}, orientation, std::move(share), {}};
}

std::string avif_version() {
  std::array<char, 256> codecs{};
  avifCodecVersions(codecs.data());
  const std::string_view text(codecs.data());
  const std::size_t at = text.find("dav1d");
  if (at == std::string_view::npos) return fmt::format("libavif {} without dav1d", avifVersion());
  const std::string_view codec = text.substr(at, text.find(',', at) - at);  // "dav1d [dec]:1.0.0"
  return fmt::format("libavif {} with dav1d {}", avifVersion(), codec.substr(codec.rfind(':') + 1));
}

}  // namespace shard::image
