#include "limits/pure_decode.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <vector>

#include <jpeglib.h>

namespace shard::bench {
namespace {

constexpr std::size_t kStripRows = 4;  // jpeglib hands out at most this many at once (rec_outbuf_height)

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}
void on_message(j_common_ptr info, int level) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  if (level >= 0) return;  // a trace
  if (errors->base.num_warnings++ == 0) errors->base.format_message(info, errors->message);
}

}  // namespace

struct PureDecoder::Impl {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  std::vector<JSAMPLE> strip;
  std::array<JSAMPROW, kStripRows> rows{};

  // A decompressor as new: libjpeg would keep the tables of the file before.
  void renew() {
    jpeg_destroy_decompress(&info);
    info = {};
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = on_error;
    errors.base.emit_message = on_message;
    jpeg_create_decompress(&info);
  }
  // No object with a destructor lives in the frames that longjmp leaves.
  bool start(const unsigned char* data, unsigned long size_bytes, std::uint32_t min_short_side) {
    if (setjmp(errors.jump) != 0) return false;
    renew();
    jpeg_mem_src(&info, data, size_bytes);
    jpeg_read_header(&info, TRUE);
    const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = four ? JCS_CMYK : JCS_RGB;
    for (info.scale_denom = 8, info.scale_num = min_short_side == 0 ? 8 : 1; info.scale_num < 8;
         ++info.scale_num) {
      jpeg_calc_output_dimensions(&info);
      if (std::min(info.output_width, info.output_height) >= min_short_side) break;
    }
    jpeg_start_decompress(&info);
    return true;
  }
  bool read_rows() {
    if (setjmp(errors.jump) != 0) return false;
    while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, rows.data(), kStripRows);
    jpeg_finish_decompress(&info);
    return true;
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
  impl.errors.message[0] = '\0';
  bool done = impl.start(reinterpret_cast<const unsigned char*>(file.data()), file.size(), min_short_side);
  if (done) {
    const std::size_t row_bytes =
        std::size_t{impl.info.output_width} * static_cast<std::size_t>(impl.info.output_components);
    if (impl.strip.size() < row_bytes * kStripRows) impl.strip.resize(row_bytes * kStripRows);
    for (std::size_t k = 0; k < kStripRows; ++k) impl.rows[k] = impl.strip.data() + k * row_bytes;
    done = impl.read_rows();
  }
  const std::uint64_t pixels = std::uint64_t{impl.info.image_width} * impl.info.image_height;
  const bool clean = done && impl.errors.base.num_warnings == 0;
  if (!done) jpeg_abort_decompress(&impl.info);
  return clean ? pixels : 0;
}

std::string PureDecoder::problem() const { return impl_->errors.message; }

}  // namespace shard::bench
