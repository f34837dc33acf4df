#include "image/codecs/jxl.hpp"

#include <fmt/format.h>
#include <jxl/decode.h>

#include <memory>

#include "image/codecs/image_formats.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

struct JxlDeleter {
  void operator()(JxlDecoder* decoder) const noexcept { JxlDecoderDestroy(decoder); }
};
using Jxl = std::unique_ptr<JxlDecoder, JxlDeleter>;

constexpr std::uint32_t kMostExtraChannels = 4;  // each takes as much memory as a colour
constexpr unsigned kMostLayers = 64;             // of the first frame

Jxl create_jxl(std::span<const std::byte> file, int events) {
  Jxl decoder(JxlDecoderCreate(nullptr));
  if (!decoder) throw Error(ErrorCode::resource, "JPEG XL: no memory for the decoder");
  if (JxlDecoderSubscribeEvents(decoder.get(), events) != JXL_DEC_SUCCESS ||
      JxlDecoderSetInput(decoder.get(), reinterpret_cast<const std::uint8_t*>(file.data()), file.size()) !=
          JXL_DEC_SUCCESS)
    throw Error(ErrorCode::unsupported, "JPEG XL: libjxl is of another version");
  JxlDecoderCloseInput(decoder.get());
  return decoder;
}

[[noreturn]] void throw_jxl_error(JxlDecoderStatus status) {
  throw Error(ErrorCode::corrupt,
              status == JXL_DEC_NEED_MORE_INPUT
                  ? "JPEG XL: the file is cut off"
                  : fmt::format("JPEG XL: the file is damaged (libjxl status {})", static_cast<int>(status)));
}

void expect_event(JxlDecoder* decoder, JxlDecoderStatus wanted) {
  const JxlDecoderStatus status = JxlDecoderProcessInput(decoder);
  if (status != wanted) throw_jxl_error(status);
}

JxlBasicInfo read_basic_info(JxlDecoder* decoder, std::uint64_t max_pixels) {
  expect_event(decoder, JXL_DEC_BASIC_INFO);
  JxlBasicInfo info{};
  if (JxlDecoderGetBasicInfo(decoder, &info) != JXL_DEC_SUCCESS) throw_jxl_error(JXL_DEC_ERROR);
  check_pixel_bound(info.xsize, info.ysize, max_pixels);
  if (info.num_extra_channels > kMostExtraChannels)
    throw Error(ErrorCode::unsupported,
                fmt::format("JPEG XL: {} channels besides the colours, at most {} are read",
                            info.num_extra_channels, kMostExtraChannels));
  for (std::uint32_t i = 0; i < info.num_extra_channels; ++i) {
    JxlExtraChannelInfo channel{};
    if (JxlDecoderGetExtraChannelInfo(decoder, i, &channel) != JXL_DEC_SUCCESS)
      throw_jxl_error(JXL_DEC_ERROR);
    if (channel.type == JXL_CHANNEL_BLACK)
      throw Error(ErrorCode::unsupported, "JPEG XL: CMYK is not read; convert it to PNG or JPEG first");
  }
  return info;
}

// The layers of the first frame, which may each be larger than the image: only then are pixels decoded.
JxlBasicInfo check_jxl(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const Jxl decoder = create_jxl(file, JXL_DEC_BASIC_INFO | JXL_DEC_FRAME);
  if (JxlDecoderSetCoalescing(decoder.get(), JXL_FALSE) != JXL_DEC_SUCCESS)
    throw Error(ErrorCode::unsupported, "JPEG XL: libjxl is of another version");
  const JxlBasicInfo info = read_basic_info(decoder.get(), max_pixels);
  for (unsigned layers = 1;; ++layers) {
    expect_event(decoder.get(), JXL_DEC_FRAME);
    JxlFrameHeader frame{};
    if (JxlDecoderGetFrameHeader(decoder.get(), &frame) != JXL_DEC_SUCCESS) throw_jxl_error(JXL_DEC_ERROR);
    check_pixel_bound(frame.layer_info.xsize, frame.layer_info.ysize, max_pixels);
    if (frame.is_last != JXL_FALSE || frame.duration > 0) return info;
    if (layers == kMostLayers)
      throw Error(ErrorCode::unsupported, fmt::format("JPEG XL: more than {} layers", kMostLayers));
  }
}

// libjxl computes in floats or 32-bit integers, and keeps channels before and after a step.
std::uint64_t jxl_decoder_bytes(const JxlBasicInfo& info) {
  return std::uint64_t{info.xsize} * info.ysize * (3 + info.num_extra_channels) * 4 * 2;
}

}  // namespace

ImageInfo read_jxl_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const JxlBasicInfo info = check_jxl(file, max_pixels);
  return {Format::jxl, info.xsize, info.ysize, 1};
}

StoredImage decode_jxl(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  check_not_cancelled(options);
  const JxlBasicInfo info = check_jxl(file, options.max_pixels);
  auto share = take_memory(options, rgb_bytes(info.xsize, info.ysize, 1) + jxl_decoder_bytes(info));
  const Jxl decoder = create_jxl(file, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE);
  read_basic_info(decoder.get(), options.max_pixels);
  const JxlPixelFormat format{3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  expect_event(decoder.get(), JXL_DEC_NEED_IMAGE_OUT_BUFFER);
  const std::size_t stride = std::size_t{info.xsize} * 3;
  std::size_t size_bytes = 0;
  if (JxlDecoderImageOutBufferSize(decoder.get(), &format, &size_bytes) != JXL_DEC_SUCCESS ||
      size_bytes != stride * info.ysize)
    throw Error(ErrorCode::corrupt,
                fmt::format("JPEG XL: {} bytes of pixels for {} x {}", size_bytes, info.xsize, info.ysize));
  std::uint8_t* out = pixels.reserve(size_bytes);
  if (JxlDecoderSetImageOutBuffer(decoder.get(), &format, out, size_bytes) != JXL_DEC_SUCCESS)
    throw_jxl_error(JXL_DEC_ERROR);
  expect_event(decoder.get(), JXL_DEC_FULL_IMAGE);
  check_not_cancelled(options);
  return {{out, info.xsize, info.ysize, stride}, 1, std::move(share), {}};
}

std::string jxl_version() {
  const std::uint32_t version = JxlDecoderVersion();
  return fmt::format("libjxl {}.{}.{}", version / 1'000'000, version / 1000 % 1000, version % 1000);
}

}  // namespace shard::image
