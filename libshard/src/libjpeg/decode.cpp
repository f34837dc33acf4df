#include "libjpeg/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "jpeg/cmyk.hpp"
#include "libjpeg/errors.hpp"
// after jpeglib.h
#include <jerror.h>

#include "shard/error.hpp"

namespace shard::libjpeg {
namespace {

constexpr std::size_t kRowsOfCall = 16;

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
  void read(const PixelsOut& out);
  void read_cmyk(const PixelsOut& out);
  bool skips_exactly() const;
  void read_part(const PixelsOut& out, const PixelsPart& part);

  Errors errors;
  jpeg_decompress_struct info{};
  bool extra_bytes = false;
  std::vector<std::uint8_t> row;  // of CMYK, or more than a part of it
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

// Runs under the guard, as the next one.
void Decoder::Impl::read(const PixelsOut& out) {
  const std::size_t stride = std::size_t{out.width} * out.channels;
  std::array<JSAMPROW, kRowsOfCall> rows;
  while (info.output_scanline < info.output_height) {
    const auto count = static_cast<JDIMENSION>(
        std::min<std::size_t>(kRowsOfCall, info.output_height - info.output_scanline));
    for (std::size_t i = 0; i < count; ++i) rows[i] = out.data + (info.output_scanline + i) * stride;
    jpeg_read_scanlines(&info, rows.data(), count);
  }
}

void Decoder::Impl::read_cmyk(const PixelsOut& out) {
  std::uint8_t* to = out.data;
  JSAMPROW one = row.data();
  for (; info.output_scanline < info.output_height; to += std::size_t{out.width} * out.channels) {
    jpeg_read_scanlines(&info, &one, 1);
    jpeg::inverted_cmyk_to_rgb(one, to, out.width);
  }
}

// Whether rows and columns can be left out without changing others: not with all samplings (libjpeg-turbo
// 2.1.5).
bool Decoder::Impl::skips_exactly() const {
  const int h = info.max_h_samp_factor;
  const int v = info.max_v_samp_factor;
  return (h <= 2 && v <= 2) || (h == 4 && v == 1);
}

void Decoder::Impl::read_part(const PixelsOut& out, const PixelsPart& part) {
  JDIMENSION left = 0;
  if (skips_exactly()) {
    // Upsampling looks one sample of colour to the side, and treats the first and the last of a row apart.
    const auto margin = static_cast<JDIMENSION>(2 * info.max_h_samp_factor);
    left = part.left - std::min(part.left, margin);
    JDIMENSION width = std::min(out.width - left, part.left - left + part.width + margin);
    if (width < out.width) jpeg_crop_scanline(&info, &left, &width);
    if (part.top > 0) jpeg_skip_scanlines(&info, part.top);
  }
  JSAMPROW one = row.data();
  while (info.output_scanline < part.top) jpeg_read_scanlines(&info, &one, 1);
  const std::size_t stride = std::size_t{out.width} * out.channels;
  const bool cmyk = info.num_components == 4;
  const std::size_t skipped = (part.left - left) * (cmyk ? 4 : std::size_t{out.channels});
  std::uint8_t* to = out.data + part.top * stride + std::size_t{part.left} * out.channels;
  for (std::uint32_t y = 0; y < part.height; ++y, to += stride) {
    JSAMPROW rows = info.output_width == part.width && !cmyk ? to : one;
    jpeg_read_scanlines(&info, &rows, 1);
    if (cmyk)
      jpeg::inverted_cmyk_to_rgb(one + skipped, to, part.width);
    else if (rows == one)
      std::memcpy(to, one + skipped, std::size_t{part.width} * out.channels);
  }
}

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;

void Decoder::decode_part(std::span<const std::byte> file, const PixelsOut& out, const PixelsPart& part) {
  Impl& self = *impl_;
  self.errors.reset(Impl::passes, &self);
  try {
    self.start(file, out);
    self.row.resize(std::size_t{out.width} * 4);
    self.errors.guard([&] { self.read_part(out, part); });
  } catch (...) {
    jpeg_abort_decompress(&self.info);
    throw;
  }
  jpeg_abort_decompress(&self.info);
}

bool Decoder::decode(std::span<const std::byte> file, const PixelsOut& out) {
  Impl& self = *impl_;
  self.errors.reset(Impl::passes, &self);
  self.extra_bytes = false;
  try {
    self.start(file, out);
    if (self.info.num_components == 4) self.row.resize(std::size_t{out.width} * 4);
    self.errors.guard([&] {
      if (self.info.num_components == 4)
        self.read_cmyk(out);
      else
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
