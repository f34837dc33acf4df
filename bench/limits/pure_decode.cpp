#include "limits/pure_decode.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "data/jpeg_errors.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr std::size_t kStripRows = 4;  // jpeglib hands out at most this many at once (rec_outbuf_height)

}  // namespace

struct PureDecoder::Impl {
  jpeg_decompress_struct info{};
  JpegErrors errors;
  std::vector<JSAMPLE> strip;
  std::array<JSAMPROW, kStripRows> rows{};
  std::string problem;

  // Everything as new: libjpeg would keep the tables of the file before.
  void renew() {
    jpeg_destroy_decompress(&info);
    info = {};
    info.err = errors.manager();
  }
  void start(std::span<const std::byte> file, std::uint32_t min_short_side) {
    errors.guard([&] {
      jpeg_create_decompress(&info);
      jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      jpeg_read_header(&info, TRUE);
      const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
      info.out_color_space = four ? JCS_CMYK : JCS_RGB;
      for (info.scale_denom = 8, info.scale_num = min_short_side == 0 ? 8 : 1; info.scale_num < 8;
           ++info.scale_num) {
        jpeg_calc_output_dimensions(&info);
        if (std::min(info.output_width, info.output_height) >= min_short_side) break;
      }
      jpeg_start_decompress(&info);
    });
  }
  void read_rows() {
    errors.guard([&] {
      while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, rows.data(), kStripRows);
      jpeg_finish_decompress(&info);
    });
  }
};

PureDecoder::PureDecoder() : impl_(std::make_unique<Impl>()) {}
PureDecoder::PureDecoder(PureDecoder&&) noexcept = default;
PureDecoder& PureDecoder::operator=(PureDecoder&&) noexcept = default;
PureDecoder::~PureDecoder() {
  if (impl_) jpeg_destroy_decompress(&impl_->info);
}

std::uint64_t PureDecoder::decode(std::span<const std::byte> file, std::uint32_t min_short_side) {
  Impl& impl = *impl_;
  impl.problem.clear();
  impl.renew();
  try {
    impl.start(file, min_short_side);
    const std::size_t row_bytes =
        std::size_t{impl.info.output_width} * static_cast<std::size_t>(impl.info.output_components);
    if (impl.strip.size() < row_bytes * kStripRows) impl.strip.resize(row_bytes * kStripRows);
    for (std::size_t k = 0; k < kStripRows; ++k) impl.rows[k] = impl.strip.data() + k * row_bytes;
    impl.read_rows();
  } catch (const Error& error) {
    impl.problem = error.what();
    return 0;
  }
  return std::uint64_t{impl.info.image_width} * impl.info.image_height;
}

std::string PureDecoder::problem() const { return impl_->problem; }

}  // namespace shard::bench
