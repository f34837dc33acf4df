#include "shard/image/decode.hpp"

#include <fmt/format.h>

#include "image/codecs/image_formats.hpp"
#include "image/pixels/memory_errors.hpp"
#include "image/pixels/orient.hpp"
#include "image/pixels/stored_image.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"

namespace shard::image {
namespace {

[[noreturn]] void refuse_unknown(std::span<const std::byte> file) {
  throw Error(file.empty() ? ErrorCode::corrupt : ErrorCode::unsupported, why_not_decodable(file));
}

// The format of a file that this build decodes.
const ImageFormat& format_of(std::span<const std::byte> file, std::uint32_t page) {
  const ImageFormat* const found = find_format(detect_format(file));
  if (found != nullptr && page != 0 && !found->has_pages)
    throw Error(ErrorCode::unsupported,
                fmt::format("page {} of {}: only TIFF files have several pages", page, found->name));
  if (found == nullptr || found->decode == nullptr) refuse_unknown(file);
  return *found;
}

}  // namespace

ImageInfo read_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page) {
  return format_of(file, page).read_info(file, max_pixels, page);
}

std::string decoder_versions() {
  std::string text;
  for (const ImageFormat& each : image_formats())
    if (each.version != nullptr) text += (text.empty() ? "" : "; ") + each.version();
  return text;
}

std::string decodable_formats() {
  std::string text;
  for (const ImageFormat& each : image_formats())
    if (each.decode != nullptr) text += fmt::format("{}{}", text.empty() ? "" : ", ", each.name);
  return text;
}

struct Decoder::Impl {
  DecodeState state;
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
  impl_->state.jpeg.close();
  impl_->state.pixels.trim();
  impl_->upright.trim();
  impl_->share.reset();
}

RgbView Decoder::decode(std::span<const std::byte> file, const DecodeOptions& options) {
  if (options.memory != nullptr) release();  // before it waits for others
  return with_memory_errors([&] { return impl_->decode(file, options); });
}

RgbView Decoder::Impl::decode(std::span<const std::byte> file, const DecodeOptions& options) {
  warnings = {};
  StoredImage image = format_of(file, options.page).decode(file, options, state);
  warnings = image.warnings;
  share = std::move(image.share);
  return turn_upright(image.pixels, image.orientation, upright);
}

}  // namespace shard::image
