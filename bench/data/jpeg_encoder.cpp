#include "data/jpeg_encoder.hpp"

#include <cstdlib>

#include "data/jpeg_errors.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

struct Output {
  unsigned char* data = nullptr;
  unsigned long size_bytes = 0;
};

void set_sampling(jpeg_compress_struct& info, Sampling sampling) {
  if (sampling == Sampling::gray) {
    jpeg_set_colorspace(&info, JCS_GRAYSCALE);
    return;
  }
  jpeg_set_colorspace(&info, JCS_YCbCr);
  info.comp_info[0].h_samp_factor = sampling == Sampling::s444 ? 1 : 2;
  info.comp_info[0].v_samp_factor = sampling == Sampling::s420 ? 2 : 1;
}

// No C++ object with a destructor lives here: libjpeg leaves by longjmp.
void encode(jpeg_compress_struct& info, const PhotoPlan& plan, const std::uint8_t* ycc, const char* comment,
            unsigned comment_bytes, Output& output) {
  jpeg_mem_dest(&info, &output.data, &output.size_bytes);
  info.image_width = plan.width;
  info.image_height = plan.height;
  info.input_components = 3;
  info.in_color_space = JCS_YCbCr;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, plan.quality, TRUE);
  set_sampling(info, plan.sampling);
  if (plan.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  jpeg_write_marker(&info, JPEG_COM, reinterpret_cast<const JOCTET*>(comment), comment_bytes);
  while (info.next_scanline < info.image_height) {
    // jpeglib takes rows as pointers to mutable bytes, and only reads them.
    JSAMPROW row = const_cast<JSAMPROW>(ycc + std::size_t{info.next_scanline} * plan.width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
}

}  // namespace

std::vector<std::byte> encode_photo(const PhotoPlan& plan, std::span<const std::uint8_t> ycc,
                                    const std::string& comment) {
  if (ycc.size() != std::size_t{plan.width} * plan.height * 3) {
    throw Error(ErrorCode::invalid_argument, "encode_photo: the picture has another size than the plan says");
  }
  JpegErrors errors;
  jpeg_compress_struct info{};
  info.err = errors.manager();
  Output output;
  struct Release {
    jpeg_compress_struct& info;
    Output& output;
    ~Release() {
      jpeg_destroy_compress(&info);
      std::free(output.data);
    }
  } const release{info, output};
  try {
    errors.guard([&] {
      jpeg_create_compress(&info);
      encode(info, plan, ycc.data(), comment.data(), static_cast<unsigned>(comment.size()), output);
    });
  } catch (const Error& error) {
    throw Error(ErrorCode::resource, std::string("JPEG encoder: ") + error.what());
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(output.data);
  return {bytes, bytes + output.size_bytes};
}

}  // namespace shard::bench
