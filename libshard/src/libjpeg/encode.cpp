#include "libjpeg/encode.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "libjpeg/errors.hpp"
#include "shard/error.hpp"

namespace shard::libjpeg {
namespace {

class Compressor {
 public:
  Compressor() {
    info.err = errors.manager();
    errors.guard([this] { jpeg_create_compress(&info); });
  }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() {
    jpeg_destroy_compress(&info);
    std::free(bytes);  // allocated by jpeg_mem_dest
  }

  Errors errors;
  jpeg_compress_struct info{};
  unsigned char* bytes = nullptr;
  unsigned long size_bytes = 0;
};

}  // namespace

std::vector<std::byte> encode(const PixelsIn& image, int quality, const Sampling& sampling) {
  if (quality < 1 || quality > 100)
    throw Error(ErrorCode::invalid_argument, fmt::format("JPEG quality {}: use 1 to 100", quality));
  if (image.width == 0 || image.height == 0 || image.width > JPEG_MAX_DIMENSION ||
      image.height > JPEG_MAX_DIMENSION)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} x {} pixels do not fit into a JPEG: 1 to {} per side", image.width,
                            image.height, JPEG_MAX_DIMENSION));
  Compressor out;
  out.errors.guard([&] {
    jpeg_compress_struct& info = out.info;
    jpeg_mem_dest(&info, &out.bytes, &out.size_bytes);
    info.image_width = image.width;
    info.image_height = image.height;
    info.input_components = static_cast<int>(image.channels);
    info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.dct_method = JDCT_ISLOW;
    if (image.channels == 3) {
      info.comp_info[0].h_samp_factor = sampling.horizontal;
      info.comp_info[0].v_samp_factor = sampling.vertical;
    }
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
      // libjpeg reads the row only; its interface is older than const
      auto* row = const_cast<JSAMPROW>(image.data + info.next_scanline * image.stride_bytes);
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
  });
  const auto* first = reinterpret_cast<const std::byte*>(out.bytes);
  return {first, first + out.size_bytes};
}

}  // namespace shard::libjpeg
