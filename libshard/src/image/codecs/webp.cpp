#include "image/codecs/webp.hpp"

#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "image/metadata/orientation.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{64} << 10;  // decoded between two looks at the cancel flag

struct DemuxerDeleter {
  void operator()(WebPDemuxer* demuxer) const noexcept { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DemuxerDeleter>;

struct IncrementalDeleter {
  void operator()(WebPIDecoder* decoder) const noexcept { WebPIDelete(decoder); }
};

class FirstFrame {
 public:
  explicit FirstFrame(const WebPDemuxer* demuxer) {
    if (WebPDemuxGetFrame(demuxer, 1, &iterator_) == 0)
      throw Error(ErrorCode::corrupt, "WebP: the file has no image");
  }
  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;
  ~FirstFrame() { WebPDemuxReleaseIterator(&iterator_); }
  const WebPIterator& operator*() const { return iterator_; }

 private:
  WebPIterator iterator_{};
};

Demuxer open(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  Demuxer demuxer(WebPDemuxPartial(&data, &state));
  if (demuxer && state != WEBP_DEMUX_PARSING_HEADER)
    check_pixel_bound(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
                      WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), max_pixels);
  if (!demuxer || state == WEBP_DEMUX_PARSE_ERROR)
    throw Error(ErrorCode::corrupt, "WebP: the file's chunks are not a valid image");
  if (state != WEBP_DEMUX_DONE)
    throw Error(ErrorCode::corrupt, fmt::format("WebP: the file is cut off after {} bytes", file.size()));
  return demuxer;
}

// The first chunk of a kind.
class Chunk {
 public:
  Chunk(const WebPDemuxer* demuxer, const char* name) {
    if (WebPDemuxGetChunk(demuxer, name, 1, &iterator_) != 0)
      bytes_ = {reinterpret_cast<const std::byte*>(iterator_.chunk.bytes), iterator_.chunk.size};
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  ~Chunk() { WebPDemuxReleaseChunkIterator(&iterator_); }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  WebPChunkIterator iterator_{};
  std::span<const std::byte> bytes_;
};

int orientation_of(const WebPDemuxer* demuxer) {
  const Chunk exif(demuxer, "EXIF");
  const Chunk xmp(demuxer, "XMP ");
  return choose_orientation(exif.bytes(), xmp.bytes());
}

// In slices, so that a large file can be cancelled.
void decode_frame(const WebPIterator& frame, const std::atomic<bool>* cancel, std::uint8_t* out,
                  std::size_t stride, std::size_t size_bytes) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    throw Error(ErrorCode::unsupported, "WebP: libwebp is of another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = out;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = size_bytes;
  const std::unique_ptr<WebPIDecoder, IncrementalDeleter> decoder(WebPIDecode(nullptr, 0, &config));
  if (!decoder) throw Error(ErrorCode::resource, "WebP: no memory for the decoder");

  const WebPData& data = frame.fragment;
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (std::size_t end = 0; end < data.size && status == VP8_STATUS_SUSPENDED;) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "WebP: decoding was cancelled");
    end += std::min(kSliceBytes, data.size - end);
    status = WebPIUpdate(decoder.get(), data.bytes, end);
  }
  if (status == VP8_STATUS_OUT_OF_MEMORY)
    throw Error(ErrorCode::resource, "WebP: no memory to decode the image");
  if (status == VP8_STATUS_SUSPENDED) throw Error(ErrorCode::corrupt, "WebP: the image data end too early");
  if (status != VP8_STATUS_OK)
    throw Error(ErrorCode::corrupt,
                fmt::format("WebP: damaged image data (libwebp status {})", static_cast<int>(status)));
}

// Besides the RGB pixels: alpha, and the whole image as ARGB where it is lossless.
std::uint64_t decoder_bytes(const WebPIterator& frame) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &features) != VP8_STATUS_OK) return 0;
  constexpr int kLossless = 2;
  const auto pixels =
      static_cast<std::uint64_t>(features.width) * static_cast<std::uint64_t>(features.height);
  return pixels * ((features.has_alpha != 0 ? 1 : 0) + (features.format == kLossless ? 4 : 0));
}

}  // namespace

ImageInfo read_webp_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const Demuxer demuxer = open(file, max_pixels);
  return {Format::webp, WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
          WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), orientation_of(demuxer.get())};
}

StoredImage decode_webp(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  const Demuxer demuxer = open(file, options.max_pixels);
  const std::uint32_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::uint32_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  const FirstFrame frame(demuxer.get());
  const auto frame_width = static_cast<std::uint32_t>((*frame).width);
  const auto frame_height = static_cast<std::uint32_t>((*frame).height);
  const auto left = static_cast<std::uint32_t>((*frame).x_offset);
  const auto top = static_cast<std::uint32_t>((*frame).y_offset);
  if (left > width || top > height || frame_width > width - left || frame_height > height - top)
    throw Error(ErrorCode::corrupt, fmt::format("WebP: frame {}x{}+{}+{} on a canvas of {}x{}", frame_width,
                                                frame_height, left, top, width, height));
  const int orientation = orientation_of(demuxer.get());
  auto share = take_memory(options, rgb_bytes(width, height, orientation) + decoder_bytes(*frame));
  const std::size_t stride = std::size_t{width} * 3;
  std::uint8_t* out = pixels.reserve(stride * height);
  if (frame_width != width || frame_height != height) std::fill_n(out, stride * height, std::uint8_t{0});
  const std::size_t offset = top * stride + std::size_t{left} * 3;
  decode_frame(*frame, options.cancel, out + offset, stride, stride * height - offset);
  return {{out, width, height, stride}, orientation, std::move(share), {}};
}

std::string webp_version() {
  const int version = WebPGetDecoderVersion();
  return fmt::format("libwebp {}.{}.{}", version >> 16, (version >> 8) & 0xFF, version & 0xFF);
}

}  // namespace shard::image
