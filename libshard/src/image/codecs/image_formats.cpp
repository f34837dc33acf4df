#include "image/codecs/image_formats.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "image/codecs/gif.hpp"
#include "image/codecs/png.hpp"
#include "image/codecs/tiff.hpp"
#include "image/codecs/tiff_file.hpp"
#include "image/codecs/webp.hpp"
#include "image/metadata/media_brand.hpp"
#include "shard/error.hpp"
// Rows of libraries that a build may lack have null in the place of their functions.
#if SHARD_WITH_TURBOJPEG
#include "image/codecs/bitmap.hpp"
#define SHARD_IF_TURBOJPEG(...) __VA_ARGS__
#else
#define SHARD_IF_TURBOJPEG(...) nullptr, nullptr, nullptr
#endif
#if SHARD_WITH_AVIF
#include "image/codecs/avif.hpp"
#define SHARD_IF_AVIF(...) __VA_ARGS__
#else
#define SHARD_IF_AVIF(...) nullptr, nullptr, nullptr
#endif
#if SHARD_WITH_HEIF
#include "image/codecs/heif.hpp"
#define SHARD_IF_HEIF(...) __VA_ARGS__
#else
#define SHARD_IF_HEIF(...) nullptr, nullptr, nullptr
#endif
#if SHARD_WITH_JXL
#include "image/codecs/jxl.hpp"
#define SHARD_IF_JXL(...) __VA_ARGS__
#else
#define SHARD_IF_JXL(...) nullptr, nullptr, nullptr
#endif

namespace shard::image {
namespace {

using File = std::span<const std::byte>;

bool matches(File file, std::size_t offset, std::string_view magic) noexcept {
  return file.size() >= offset + magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin() + static_cast<std::ptrdiff_t>(offset),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

// Classic and BigTIFF. Camera raw files that begin as TIFF does have marks of their own.
bool is_tiff(File file) noexcept {
  using namespace std::string_view_literals;
  if (matches(file, 8, "CR\2\0"sv)) return false;
  return matches(file, 0, "II*\0"sv) || matches(file, 0, "MM\0*"sv) || matches(file, 0, "II+\0"sv) ||
         matches(file, 0, "MM\0+"sv);
}

bool is_space(std::byte b) noexcept {
  const auto c = std::to_integer<unsigned char>(b);
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// P1 to P6, then the width, perhaps behind comments.
bool is_pnm(File file) noexcept {
  if (file.size() < 4 || !matches(file, 0, "P") || file[1] < std::byte{'1'} || file[1] > std::byte{'6'})
    return false;
  if (file[2] == std::byte{'#'}) return true;
  std::size_t at = 2;
  while (at < file.size() && is_space(file[at])) ++at;
  return at > 2 && at < file.size() &&
         (file[at] == std::byte{'#'} || (file[at] >= std::byte{'0'} && file[at] <= std::byte{'9'}));
}

// "BM", and the size of a known header at 14.
bool is_bmp(File file) noexcept {
  using namespace std::string_view_literals;
  if (!matches(file, 0, "BM") || !matches(file, 15, "\0\0\0"sv)) return false;
  const auto header = std::to_integer<unsigned>(file[14]);
  return header == 12 || (header >= 16 && header <= 124);
}

bool is_jxl(File file) noexcept {
  using namespace std::string_view_literals;
  return matches(file, 0, "\xFF\x0A"sv) || matches(file, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv);
}

bool is_jpeg(File file) noexcept { return matches(file, 0, "\xFF\xD8\xFF"); }
bool is_png(File file) noexcept { return matches(file, 0, "\x89PNG\r\n\x1A\n"); }
bool is_webp(File file) noexcept { return matches(file, 0, "RIFF") && matches(file, 8, "WEBP"); }
bool is_gif(File file) noexcept { return matches(file, 0, "GIF87a") || matches(file, 0, "GIF89a"); }
bool is_avif(File file) noexcept { return media_brand(as_text(file)) == MediaBrand::avif; }
bool is_heif(File file) noexcept {
  const MediaBrand brand = media_brand(as_text(file));
  return brand == MediaBrand::heic || brand == MediaBrand::heif;
}

// Of formats whose files have one picture.
template <ImageInfo (*read)(File, std::uint64_t)>
ImageInfo only_page(File file, std::uint64_t max_pixels, std::uint32_t) {
  return read(file, max_pixels);
}
template <StoredImage (*decode)(File, const DecodeOptions&, PixelBuffer&)>
StoredImage into_pixels(File file, const DecodeOptions& options, DecodeState& state) {
  return decode(file, options, state.pixels);
}
StoredImage decode_jpeg_with(File file, const DecodeOptions& options, DecodeState& state) {
  return decode_jpeg(state.jpeg, file, options, state.pixels);
}

// clang-format off
constexpr std::array kFormats{
    ImageFormat{Format::jpeg, "JPEG", "a JPEG image", "jpg jpeg jpe jfif", is_jpeg,
                "libjpeg-turbo", "libjpeg-dev", false, only_page<read_jpeg_info>, decode_jpeg_with, jpeg_version},
    ImageFormat{Format::png, "PNG", "a PNG image", "png apng", is_png,
                "libspng", "libspng-dev", false, only_page<read_png_info>, into_pixels<decode_png>, png_version},
    ImageFormat{Format::webp, "WebP", "a WebP image", "webp", is_webp,
                "libwebp", "libwebp-dev", false, only_page<read_webp_info>, into_pixels<decode_webp>, webp_version},
    ImageFormat{Format::tiff, "TIFF", "a TIFF image", "tif tiff", is_tiff,
                "libtiff", "libtiff-dev", true, read_tiff_info, into_pixels<decode_tiff>, tiff_version},
    ImageFormat{Format::gif, "GIF", "a GIF image", "gif", is_gif,
                "giflib", "libgif-dev", false, only_page<read_gif_info>, into_pixels<decode_gif>, gif_version},
    ImageFormat{Format::bmp, "BMP", "a BMP image", "bmp dib", is_bmp, "TurboJPEG", "libturbojpeg0-dev", false,
                SHARD_IF_TURBOJPEG(only_page<read_bmp_info>, into_pixels<decode_bmp>, turbojpeg_version)},
    ImageFormat{Format::pnm, "PNM", "a Netpbm image", "", is_pnm, "TurboJPEG", "libturbojpeg0-dev", false,
                SHARD_IF_TURBOJPEG(only_page<read_pnm_info>, into_pixels<decode_pnm>, nullptr)},
    ImageFormat{Format::avif, "AVIF", "an AVIF image", "avif", is_avif, "libavif", "libavif-dev", false,
                SHARD_IF_AVIF(only_page<read_avif_info>, into_pixels<decode_avif>, avif_version)},
    ImageFormat{Format::heic, "HEIC", "a HEIC image", "heic heif hif", is_heif, "libheif", "libheif-dev", false,
                SHARD_IF_HEIF(only_page<read_heif_info>, into_pixels<decode_heif>, heif_version)},
    ImageFormat{Format::jxl, "JPEG XL", "a JPEG XL image", "jxl", is_jxl, "libjxl", "libjxl-dev", false,
                SHARD_IF_JXL(only_page<read_jxl_info>, into_pixels<decode_jxl>, jxl_version)},
};
// clang-format on

}  // namespace

std::span<const ImageFormat> image_formats() noexcept { return kFormats; }

const ImageFormat* find_format(Format format) noexcept {
  for (const ImageFormat& each : kFormats)
    if (each.format == format) return &each;
  return nullptr;
}

void check_not_cancelled(const DecodeOptions& options) {
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
    throw Error(ErrorCode::cancelled, "decoding was cancelled");
}

}  // namespace shard::image
