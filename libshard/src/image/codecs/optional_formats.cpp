#include "image/codecs/optional_formats.hpp"

#include <fmt/format.h>

#include <array>

#include "shard/error.hpp"
#if SHARD_WITH_TURBOJPEG
#include "image/codecs/bitmap.hpp"
#endif
#if SHARD_WITH_AVIF
#include "image/codecs/avif.hpp"
#endif
#if SHARD_WITH_HEIF
#include "image/codecs/heif.hpp"
#endif
#if SHARD_WITH_JXL
#include "image/codecs/jxl.hpp"
#endif

namespace shard::image {
namespace {

struct OptionalFormat {
  Format format;
  const char* library;
  const char* package;
  ImageInfo (*read_info)(std::span<const std::byte>, std::uint64_t) = nullptr;  // null: not in this build
  StoredImage (*decode)(std::span<const std::byte>, const DecodeOptions&, PixelBuffer&) = nullptr;
  std::string (*version)() = nullptr;
};

constexpr std::array kOptionalFormats {
#if SHARD_WITH_TURBOJPEG
  OptionalFormat{Format::bmp, "TurboJPEG", "libturbojpeg0-dev", read_bmp_info, decode_bmp, turbojpeg_version},
      OptionalFormat{Format::pnm, "TurboJPEG", "libturbojpeg0-dev", read_pnm_info, decode_pnm, nullptr},
#else
  OptionalFormat{Format::bmp, "TurboJPEG", "libturbojpeg0-dev"},
      OptionalFormat{Format::pnm, "TurboJPEG", "libturbojpeg0-dev"},
#endif
#if SHARD_WITH_AVIF
      OptionalFormat{Format::avif, "libavif", "libavif-dev", read_avif_info, decode_avif, avif_version},
#else
      OptionalFormat{Format::avif, "libavif", "libavif-dev"},
#endif
#if SHARD_WITH_HEIF
      OptionalFormat{Format::heic, "libheif", "libheif-dev", read_heif_info, decode_heif, heif_version},
#else
      OptionalFormat{Format::heic, "libheif", "libheif-dev"},
#endif
#if SHARD_WITH_JXL
      OptionalFormat{Format::jxl, "libjxl", "libjxl-dev", read_jxl_info, decode_jxl, jxl_version},
#else
      OptionalFormat{Format::jxl, "libjxl", "libjxl-dev"},
#endif
};

const OptionalFormat* find_optional(Format format) noexcept {
  for (const OptionalFormat& each : kOptionalFormats)
    if (each.format == format) return &each;
  return nullptr;
}

const OptionalFormat& require_built_in(Format format) {
  const OptionalFormat* found = find_optional(format);
  if (found == nullptr || found->decode == nullptr)
    throw Error(ErrorCode::unsupported, fmt::format("this build reads no {}: it needs {}", to_string(format),
                                                    optional_package(format)));
  return *found;
}

}  // namespace

bool is_built_in(Format format) noexcept {
  const OptionalFormat* found = find_optional(format);
  return found == nullptr || found->decode != nullptr;
}

ImageInfo read_optional_info(Format format, std::span<const std::byte> file, std::uint64_t max_pixels) {
  return require_built_in(format).read_info(file, max_pixels);
}

StoredImage decode_optional(Format format, std::span<const std::byte> file, const DecodeOptions& options,
                            PixelBuffer& pixels) {
  return require_built_in(format).decode(file, options, pixels);
}

std::string optional_versions() {
  std::string text;
  for (const OptionalFormat& each : kOptionalFormats)
    if (each.version != nullptr) text += "; " + each.version();
  return text;
}

std::string optional_names() {
  std::string text;
  for (const OptionalFormat& each : kOptionalFormats)
    if (each.decode != nullptr) text += fmt::format(", {}", to_string(each.format));
  return text;
}

std::string optional_package(Format format) {
  const OptionalFormat* found = find_optional(format);
  return found == nullptr ? std::string() : fmt::format("{} (Debian: {})", found->library, found->package);
}

void check_not_cancelled(const DecodeOptions& options) {
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
    throw Error(ErrorCode::cancelled, "decoding was cancelled");
}

}  // namespace shard::image
