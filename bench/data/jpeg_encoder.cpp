#include "data/jpeg_encoder.hpp"

#include "data/jpeg_errors.hpp"
// ERREXIT1, after jpeglib.h
#include <jerror.h>

#include <utility>

#include "shard/error.hpp"

namespace shard::bench {
namespace {

// Memory for the whole file. jpeg_mem_dest says where its own is only at the end of the file, so what it has
// by then would be lost, or freed twice, where an error ends the file earlier.
class Output {
 public:
  explicit Output(std::size_t bytes) : bytes_(bytes) {
    manager_.init_destination = [](j_compress_ptr) {};
    manager_.empty_output_buffer = [](j_compress_ptr info) -> boolean {
      ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
      return FALSE;
    };
    manager_.term_destination = [](j_compress_ptr) {};
    manager_.next_output_byte = reinterpret_cast<JOCTET*>(bytes_.data());
    manager_.free_in_buffer = bytes_.size();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() = default;

  jpeg_destination_mgr* manager() noexcept { return &manager_; }
  // After jpeg_finish_compress().
  std::vector<std::byte> take() {
    bytes_.resize(bytes_.size() - manager_.free_in_buffer);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
  jpeg_destination_mgr manager_{};
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
  info.dest = output.manager();
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
  // Twice what the samples take: no code is longer.
  Output output(2 * ycc.size() + comment.size() + (std::size_t{1} << 16U));
  struct Release {
    jpeg_compress_struct& info;
    ~Release() { jpeg_destroy_compress(&info); }
  } const release{info};
  try {
    errors.guard([&] {
      jpeg_create_compress(&info);
      encode(info, plan, ycc.data(), comment.data(), static_cast<unsigned>(comment.size()), output);
    });
  } catch (const Error& error) {
    throw Error(ErrorCode::resource, std::string("JPEG encoder: ") + error.what());
  }
  return output.take();
}

}  // namespace shard::bench
