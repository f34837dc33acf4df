#include "image/codecs/heif.hpp"

#include <fmt/format.h>
#include <libheif/heif.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/bytes.hpp"
#include "image/codecs/image_formats.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

struct HeifDeleter {
  void operator()(heif_context* context) const noexcept { heif_context_free(context); }
  void operator()(heif_image_handle* handle) const noexcept { heif_image_handle_release(handle); }
  void operator()(heif_image* image) const noexcept { heif_image_release(image); }
  void operator()(heif_decoding_options* options) const noexcept { heif_decoding_options_free(options); }
};
template <class T>
using Heif = std::unique_ptr<T, HeifDeleter>;

void check_heif(const heif_error& error) {
  if (error.code == heif_error_Ok) return;
  const std::string_view text = error.message == nullptr ? "the file is damaged" : error.message;
  const bool no_memory = error.code == heif_error_Memory_allocation_error;
  const bool unsupported =
      error.code == heif_error_Unsupported_feature || error.code == heif_error_Unsupported_filetype;
  throw Error(no_memory     ? ErrorCode::resource
              : unsupported ? ErrorCode::unsupported
                            : ErrorCode::corrupt,
              fmt::format("HEIC: {}", text.substr(0, text.find_last_not_of(" \n") + 1)));
}

// --- The sizes in HEVC's own headers: libheif checks those of the container only,
// and libde265 allocates by these.

// The bits of a NAL unit. Behind the end there are zeros.
class NalBits {
 public:
  explicit NalBits(std::string_view nal) : nal_(nal) {}
  unsigned bit() noexcept {
    if (shift_ == 0) {
      // A 3 behind two zeros is no part of the data.
      if (zeros_ >= 2 && at_ < nal_.size() && nal_[at_] == 3) {
        ++at_;
        zeros_ = 0;
      }
      byte_ = at_ < nal_.size() ? static_cast<unsigned char>(nal_[at_]) : 0U;
      ++at_;
      zeros_ = byte_ == 0 ? zeros_ + 1 : 0;
      shift_ = 8;
    }
    return byte_ >> --shift_ & 1U;
  }
  std::uint64_t bits(unsigned count) noexcept {
    std::uint64_t value = 0;
    for (; count > 0; --count) value = value << 1 | bit();
    return value;
  }
  void skip(unsigned count) noexcept {
    for (; count > 0; --count) bit();
  }
  // Exponential Golomb code. 2^32 - 1 if it is longer than such codes are.
  std::uint64_t number() noexcept {
    unsigned zeros = 0;
    while (bit() == 0)
      if (++zeros > 31) return UINT32_MAX;
    return (std::uint64_t{1} << zeros) - 1 + bits(zeros);
  }

 private:
  std::string_view nal_;
  std::size_t at_ = 0;
  unsigned zeros_ = 0;
  unsigned byte_ = 0;
  unsigned shift_ = 0;
};

// What is coded are whole blocks, of which the image may be a part.
void check_coded_size(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels) {
  constexpr std::uint64_t kBlock = 64;
  check_pixel_bound(width, height, max_pixels + std::min(width * height, (width + height + kBlock) * kBlock));
}

// Of a sequence parameter set (H.265, 7.3.2.2).
void check_sequence(std::string_view nal, std::uint64_t max_pixels) {
  NalBits bits(nal);
  bits.skip(16 + 4);
  const auto layers = static_cast<unsigned>(bits.bits(3));
  bits.skip(1 + 96);
  const std::uint64_t present = layers > 0 ? bits.bits(16) : 0;  // two bits each: profile and level
  for (unsigned i = 0; i < layers; ++i) {
    const auto pair = static_cast<unsigned>(present >> (14 - 2 * i) & 3U);
    bits.skip(((pair & 2U) != 0 ? 88 : 0) + ((pair & 1U) != 0 ? 8 : 0));
  }
  bits.number();                         // its own number
  if (bits.number() == 3) bits.skip(1);  // chroma
  const std::uint64_t width = bits.number();
  const std::uint64_t height = bits.number();
  check_coded_size(width, height, max_pixels);
}

// In every hvcC box of the file, wherever it is.
void check_sequences(std::span<const std::byte> file, std::uint64_t max_pixels) {
  constexpr std::size_t kFixed = 22;
  constexpr unsigned kSequence = 33;
  const std::string_view text = as_text(file);
  const auto number = [&](std::size_t at) {
    return std::size_t{static_cast<unsigned char>(text[at])} << 8 | static_cast<unsigned char>(text[at + 1]);
  };
  for (std::size_t box = text.find("hvcC"); box != std::string_view::npos; box = text.find("hvcC", box + 4)) {
    std::size_t at = box + 4 + kFixed;
    if (at >= text.size()) return;
    for (unsigned arrays = static_cast<unsigned char>(text[at++]); arrays > 0 && at + 3 <= text.size();
         --arrays) {
      const unsigned type = static_cast<unsigned char>(text[at]) & 0x3FU;
      std::size_t units = number(at + 1);
      at += 3;
      for (; units > 0 && at + 2 <= text.size(); --units) {
        const std::size_t size = number(at);
        at += 2;
        if (size > text.size() - at) break;
        if (type == kSequence) check_sequence(text.substr(at, size), max_pixels);
        at += size;
      }
      if (units > 0) break;
    }
  }
}

struct OpenHeif {
  Heif<heif_context> context;
  Heif<heif_image_handle> handle;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

OpenHeif open_heif(std::span<const std::byte> file, std::uint64_t max_pixels) {
  OpenHeif opened;
  opened.context.reset(heif_context_alloc());
  if (!opened.context) throw Error(ErrorCode::resource, "HEIC: no memory for the decoder");
  heif_context_set_max_decoding_threads(opened.context.get(), 0);
  check_heif(
      heif_context_read_from_memory_without_copy(opened.context.get(), file.data(), file.size(), nullptr));
  heif_image_handle* handle = nullptr;
  check_heif(heif_context_get_primary_image_handle(opened.context.get(), &handle));
  opened.handle.reset(handle);
  opened.width = static_cast<std::uint32_t>(std::max(heif_image_handle_get_width(handle), 0));
  opened.height = static_cast<std::uint32_t>(std::max(heif_image_handle_get_height(handle), 0));
  check_pixel_bound(opened.width, opened.height, max_pixels);
  const int coded_width = heif_image_handle_get_ispe_width(handle);
  const int coded_height = heif_image_handle_get_ispe_height(handle);
  if (coded_width > 0 && coded_height > 0)
    check_coded_size(static_cast<std::uint64_t>(coded_width), static_cast<std::uint64_t>(coded_height),
                     max_pixels);
  check_sequences(file, max_pixels);
  return opened;
}

// libde265's frame and libheif's copies of its planes, before and after each change of form,
// up to 16 bits each.
constexpr std::uint64_t kHeifPixelBytes = 13;

}  // namespace

ImageInfo read_heif_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const OpenHeif heif = open_heif(file, max_pixels);
  return {Format::heic, heif.width, heif.height, 1};
}

StoredImage decode_heif(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  check_not_cancelled(options);
  const OpenHeif heif = open_heif(file, options.max_pixels);
  auto share = take_memory(options, rgb_bytes(heif.width, heif.height, 1) +
                                        std::uint64_t{heif.width} * heif.height * kHeifPixelBytes);
  const Heif<heif_decoding_options> how(heif_decoding_options_alloc());
  if (!how) throw Error(ErrorCode::resource, "HEIC: no memory for the decoder");
  how->convert_hdr_to_8bit = 1;
  if (how->version >= 3) how->strict_decoding = 1;
  heif_image* decoded = nullptr;
  check_heif(heif_decode_image(heif.handle.get(), &decoded, heif_colorspace_RGB, heif_chroma_interleaved_RGB,
                               how.get()));
  const Heif<heif_image> image(decoded);
  check_not_cancelled(options);

  const int width = heif_image_get_width(decoded, heif_channel_interleaved);
  const int height = heif_image_get_height(decoded, heif_channel_interleaved);
  int plane_stride = 0;
  const std::uint8_t* plane = heif_image_get_plane_readonly(decoded, heif_channel_interleaved, &plane_stride);
  if (plane == nullptr || width != static_cast<int>(heif.width) || height != static_cast<int>(heif.height))
    throw Error(ErrorCode::corrupt, fmt::format("HEIC: {} x {} pixels instead of {} x {}", width, height,
                                                heif.width, heif.height));
  const std::size_t stride = std::size_t{heif.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * heif.height);
  for (std::size_t y = 0; y < heif.height; ++y)
    std::copy_n(plane + y * static_cast<std::size_t>(plane_stride), stride, out + y * stride);
  return {{out, heif.width, heif.height, stride}, 1, std::move(share), {}};
}

std::string heif_version() { return fmt::format("libheif {}", heif_get_version()); }

}  // namespace shard::image
