#include "libjpeg/encode.hpp"

#include <fmt/format.h>

#include "libjpeg/errors.hpp"
#include "libjpeg/output.hpp"
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
  ~Compressor() { jpeg_destroy_compress(&info); }

  Errors errors;
  Output file;
  jpeg_compress_struct info{};
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
  if (!out.file.attach(out.info)) throw Error(ErrorCode::resource, "JPEG: no memory for the encoded file");
  out.errors.guard([&] {
    jpeg_compress_struct& info = out.info;
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
  return out.file.take();
}

}  // namespace shard::libjpeg
