#include "libjpeg/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "jpeg/cmyk.hpp"
#include "jpeg/orient.hpp"
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

  Errors errors;
  jpeg_decompress_struct info{};
  bool extra_bytes = false;
  std::vector<std::uint8_t> cmyk;   // a row
  std::vector<std::uint8_t> strip;  // rows before they are turned
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

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;

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
