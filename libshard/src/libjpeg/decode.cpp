#include "libjpeg/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "jpeg/cmyk.hpp"
#include "jpeg/orient.hpp"
#include "jpeg/region.hpp"
#include "libjpeg/errors.hpp"
// after jpeglib.h
#include <jerror.h>

#include "shard/error.hpp"

namespace shard::libjpeg {
namespace {

constexpr JDIMENSION kRowsOfCall = 32;

}  // namespace

struct Decoder::Impl {
  Impl() {
    info.err = errors.manager();
    errors.guard([this] { jpeg_create_decompress(&info); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { jpeg_destroy_decompress(&info); }

  static bool passes(void* self, int code) noexcept {
    return static_cast<Impl*>(self)->extra_bytes = code == JWRN_EXTRANEOUS_DATA;
  }
  void start(std::span<const std::byte> file, const PixelsOut& out);
  void read_rows(std::uint8_t* to, std::size_t stride, JDIMENSION count);
  void read(const PixelsOut& out);
  bool skips_exactly() const;
  void read_part(const jpeg::PixelBox& part, std::uint8_t* to, std::size_t stride, std::size_t channels);

  void put_upright(const PixelsOut& out, const jpeg::PixelBox& part, const jpeg::PixelBox& upright);

  Errors errors;
  jpeg_decompress_struct info{};
  bool extra_bytes = false;
  std::vector<std::uint8_t> cmyk;   // a row
  std::vector<std::uint8_t> strip;  // rows before they are turned
  std::vector<std::uint8_t> turned;
  std::vector<std::uint8_t> row;  // of which a part is needed
};

void Decoder::Impl::start(std::span<const std::byte> file, const PixelsOut& out) {
  errors.guard([&] {
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()),
                 static_cast<unsigned long>(file.size()));
    jpeg_read_header(&info, TRUE);
  });
  if (info.image_width != out.width || info.image_height != out.height ||
      (out.channels == 1 && info.num_components != 1))
    throw Error(ErrorCode::corrupt, fmt::format("JPEG: {} x {} pixels of {} components instead of {} x {} "
                                                "for {} channels",
                                                info.image_width, info.image_height, info.num_components,
                                                out.width, out.height, out.channels));
  errors.guard([&] {
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : out.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info);
  });
}

// The next rows, `stride` apart. Runs under the guard.
void Decoder::Impl::read_rows(std::uint8_t* to, std::size_t stride, JDIMENSION count) {
  if (info.num_components == 4) {
    for (JDIMENSION i = 0; i < count; ++i, to += stride) {
      JSAMPROW one = cmyk.data();
      jpeg_read_scanlines(&info, &one, 1);
      jpeg::inverted_cmyk_to_rgb(one, to, info.output_width);
    }
    return;
  }
  std::array<JSAMPROW, kRowsOfCall> rows;
  for (JDIMENSION i = 0; i < count; ++i) rows[i] = to + i * stride;
  for (JDIMENSION done = 0; done < count;)
    done += jpeg_read_scanlines(&info, rows.data() + done, count - done);
}

// Rows are turned while they are hot in cache. Runs under the guard.
void Decoder::Impl::read(const PixelsOut& out) {
  const std::size_t stride = std::size_t{out.width} * out.channels;
  while (info.output_scanline < info.output_height) {
    const JDIMENSION first = info.output_scanline;
    const JDIMENSION count = std::min(kRowsOfCall, info.output_height - first);
    if (out.orientation == 1) {
      read_rows(out.data + first * stride, stride, count);
      continue;
    }
    read_rows(strip.data(), stride, count);
    jpeg::turn_rows({strip.data(), out.width, count, out.channels, stride}, first, out.height,
                    out.orientation, out.data);
  }
}

// Whether rows and columns can be left out without changing others: not with all samplings (libjpeg-turbo
// 2.1.5).
bool Decoder::Impl::skips_exactly() const {
  const int h = info.max_h_samp_factor;
  const int v = info.max_v_samp_factor;
  return (h <= 2 && v <= 2) || (h == 4 && v == 1);
}

// Rows of the part, `stride` apart. Runs under the guard.
void Decoder::Impl::read_part(const jpeg::PixelBox& part, std::uint8_t* to, std::size_t stride,
                              std::size_t channels) {
  JDIMENSION left = 0;
  if (skips_exactly()) {
    // Upsampling looks one sample of colour to the side, and treats the first and the last of a row apart.
    const auto margin = static_cast<JDIMENSION>(2 * info.max_h_samp_factor);
    left = part.left - std::min(part.left, margin);
    JDIMENSION width = std::min(info.output_width - left, part.left - left + part.width + margin);
    if (width < info.output_width) jpeg_crop_scanline(&info, &left, &width);
    if (part.top > 0) jpeg_skip_scanlines(&info, part.top);
  }
  while (info.output_scanline < part.top) read_rows(row.data(), 0, 1);
  const bool whole = info.output_width == part.width;
  for (std::uint32_t y = 0; y < part.height; ++y, to += stride) {
    read_rows(whole ? to : row.data(), 0, 1);
    if (!whole) std::memcpy(to, row.data() + (part.left - left) * channels, part.width * channels);
  }
}

// The part is in `strip`.
void Decoder::Impl::put_upright(const PixelsOut& out, const jpeg::PixelBox& part,
                                const jpeg::PixelBox& upright) {
  const std::size_t channels = out.channels;
  turned.resize(strip.size());
  jpeg::turn_upright({strip.data(), part.width, part.height, out.channels, part.width * channels},
                     out.orientation, turned.data());
  const std::size_t stride = (out.orientation >= 5 ? out.height : out.width) * channels;
  for (std::size_t y = 0; y < upright.height; ++y)
    std::memcpy(out.data + (upright.top + y) * stride + upright.left * channels,
                turned.data() + y * upright.width * channels, upright.width * channels);
}

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;

void Decoder::decode_part(std::span<const std::byte> file, const PixelsOut& out,
                          const jpeg::PixelBox& upright) {
  Impl& self = *impl_;
  jpeg::FrameFile shape;
  shape.size = out.width | out.height << 16;
  shape.orientation = out.orientation;
  const jpeg::PixelBox part = jpeg::stored_box(shape, upright);
  self.errors.reset(Impl::passes, &self);
  const std::size_t channels = out.channels;
  const std::size_t part_bytes = part.width * channels;
  try {
    self.start(file, out);
    if (self.info.num_components == 4) self.cmyk.resize(std::size_t{out.width} * 4);
    self.row.resize(out.width * channels);
    if (out.orientation == 1) {
      const std::size_t stride = out.width * channels;
      self.errors.guard([&] {
        self.read_part(part, out.data + part.top * stride + part.left * channels, stride, channels);
      });
    } else {
      self.strip.resize(part.height * part_bytes);
      self.errors.guard([&] { self.read_part(part, self.strip.data(), part_bytes, channels); });
    }
  } catch (...) {
    jpeg_abort_decompress(&self.info);
    throw;
  }
  jpeg_abort_decompress(&self.info);
  if (out.orientation != 1) self.put_upright(out, part, upright);
}

bool Decoder::decode(std::span<const std::byte> file, const PixelsOut& out) {
  Impl& self = *impl_;
  self.errors.reset(Impl::passes, &self);
  self.extra_bytes = false;
  try {
    self.start(file, out);
    if (self.info.num_components == 4) self.cmyk.resize(std::size_t{out.width} * 4);
    if (out.orientation != 1) self.strip.resize(kRowsOfCall * std::size_t{out.width} * out.channels);
    self.errors.guard([&] {
      self.read(out);
      jpeg_finish_decompress(&self.info);
    });
  } catch (...) {
    jpeg_abort_decompress(&self.info);
    throw;
  }
  return self.extra_bytes;
}

}  // namespace shard::libjpeg
