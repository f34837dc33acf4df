#include "image/codecs/bitmap.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/files/file_io.hpp"
#include "image/codecs/image_formats.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kLongestSide = 65500;  // libjpeg's

// What TurboJPEG gets: a plain header, and the part of the file that has the pixels.
struct Bitmap {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool from_top = false;            // BMP: the first row of the file is the upper one
  std::uint64_t decoder_bytes = 0;  // that TurboJPEG takes, without its result
  std::vector<std::byte> header;
  std::span<const std::byte> pixels;
};

void check_bitmap_size(const char* format, std::uint64_t width, std::uint64_t height,
                       std::uint64_t max_pixels) {
  check_pixel_bound(width, height, max_pixels);
  if (std::max(width, height) > kLongestSide)
    throw Error(ErrorCode::unsupported, fmt::format("{}: {} x {} pixels; sides of more than {} are not read: "
                                                    "convert it to PNG or JPEG first",
                                                    format, width, height, kLongestSide));
}

[[noreturn]] void refuse_kind(const char* format, const std::string& what) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: {} are not read; convert it to PNG or JPEG first", format, what));
}

// --- BMP

std::uint32_t load_le(std::span<const std::byte> file, std::size_t offset, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::to_integer<std::uint32_t>(file[offset + i]) << (8 * i);
  return value;
}

void append_le(std::vector<std::byte>& out, std::uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
void append_zeros(std::vector<std::byte>& out, std::size_t bytes) {
  out.insert(out.end(), bytes, std::byte{0});
}

// The number of colours where the header does not say it: as many as there is room for, 256 at most. `room`:
// the bytes between header and pixels. Files exist whose entries have another size than their header stands
// for: what may be one is refused.
std::uint32_t implied_colors(std::span<const std::byte> room, std::size_t color_bytes) {
  constexpr std::size_t kAll = 256;
  if (room.size() >= kAll * color_bytes && (color_bytes == 4 || room.size() != kAll * 4))
    return kAll;  // what both headers stand for
  bool fours = room.size() % 4 == 0;
  for (std::size_t i = 3; i < room.size() && fours; i += 4) fours = room[i] == std::byte{0};
  if (fours != (color_bytes == 4))
    refuse_kind("BMP",
                fmt::format("palettes of {} bytes, whose entries may have 3 bytes or 4,", room.size()));
  return static_cast<std::uint32_t>(std::min(room.size() / color_bytes, kAll));
}

Bitmap parse_bmp(std::span<const std::byte> file, std::uint64_t max_pixels) {
  constexpr std::size_t kInfo = 14;  // where the second header begins
  const auto need = [&](std::size_t size) {
    if (file.size() < size)
      throw Error(ErrorCode::corrupt, fmt::format("BMP: the header is cut off after {} bytes", file.size()));
  };
  need(kInfo + 12);
  const std::size_t info_bytes = load_le(file, kInfo, 4);
  const bool old = info_bytes == 12;
  if (!old && (info_bytes < 40 || info_bytes > 124))
    throw Error(ErrorCode::corrupt, fmt::format("BMP: a header of {} bytes", info_bytes));
  need(kInfo + info_bytes);

  Bitmap bitmap;
  bitmap.width = load_le(file, kInfo + 4, old ? 2 : 4);
  const std::uint32_t rows = old ? load_le(file, kInfo + 6, 2) : load_le(file, kInfo + 8, 4);
  bitmap.from_top = (rows >> 31) != 0;
  bitmap.height = bitmap.from_top ? 0U - rows : rows;
  check_bitmap_size("BMP", bitmap.width, bitmap.height, max_pixels);
  const std::uint32_t bits = load_le(file, kInfo + (old ? 10 : 14), 2);
  const std::uint32_t compression = old ? 0 : load_le(file, kInfo + 16, 4);
  if (bits != 8 && bits != 24 && bits != 32) refuse_kind("BMP", fmt::format("pixels of {} bits", bits));

  constexpr std::uint32_t kMasks = 3;
  std::size_t end = kInfo + info_bytes;  // of the headers
  if (compression == kMasks && bits == 32) {
    constexpr std::size_t kMaskBytes = 12;
    if (info_bytes == 40) end += kMaskBytes;
    need(kInfo + 40 + kMaskBytes);
    if (load_le(file, kInfo + 40, 4) != 0xFF0000 || load_le(file, kInfo + 44, 4) != 0xFF00 ||
        load_le(file, kInfo + 48, 4) != 0xFF)
      refuse_kind("BMP", "channels in other places than blue, green, red");
  } else if (compression != 0) {
    refuse_kind("BMP", fmt::format("compressed pixels (kind {})", compression));
  }

  std::uint32_t colors = 0;
  const std::size_t color_bytes = old ? 3 : 4;
  const std::size_t begin = load_le(file, 10, 4);
  if (bits == 8) {
    colors = old ? 0 : load_le(file, kInfo + 32, 4);
    if (colors == 0 && begin > end && begin <= file.size())
      colors = implied_colors(file.subspan(end, begin - end), color_bytes);
    if (colors == 0 || colors > 256)
      throw Error(ErrorCode::corrupt, fmt::format("BMP: a palette of {} colours", colors));
    need(end + colors * color_bytes);
  }
  const std::size_t stride = (std::size_t{bitmap.width} * bits + 31) / 32 * 4;
  if (begin < end + colors * color_bytes || begin > file.size())
    throw Error(ErrorCode::corrupt, fmt::format("BMP: pixels at byte {} of {}", begin, file.size()));
  if (file.size() - begin < stride * bitmap.height)
    throw Error(ErrorCode::corrupt, fmt::format("BMP: the file is cut off: {} bytes of pixels instead of {}",
                                                file.size() - begin, stride * bitmap.height));
  bitmap.pixels = file.subspan(begin, stride * bitmap.height);
  bitmap.decoder_bytes = bitmap.pixels.size() * 2;  // the file in memory, and TurboJPEG's copy to turn it

  std::vector<std::byte>& out = bitmap.header;
  const std::uint32_t offset = 54 + colors * 4;
  for (const char c : {'B', 'M'}) out.push_back(static_cast<std::byte>(c));
  append_zeros(out, 8);  // the size of the file, which nobody reads, and nothing
  append_le(out, offset, 4);
  append_le(out, 40, 4);
  append_le(out, bitmap.width, 4);
  append_le(out, bitmap.height, 4);
  append_le(out, 1, 2);
  append_le(out, bits, 2);
  append_zeros(out, 16);
  append_le(out, colors, 4);
  append_le(out, 0, 4);
  for (std::size_t i = 0; i < colors; ++i)
    for (std::size_t k = 0; k < 4; ++k) out.push_back(k < 3 ? file[end + i * color_bytes + k] : std::byte{0});
  return bitmap;
}

// --- PNM

bool is_pnm_space(std::byte b) noexcept {
  const auto c = std::to_integer<unsigned char>(b);
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The next number of the header; `at` is behind it then.
std::uint32_t next_number(std::span<const std::byte> file, std::size_t& at) {
  while (at < file.size() && (is_pnm_space(file[at]) || file[at] == std::byte{'#'})) {
    if (file[at] == std::byte{'#'})
      while (at < file.size() && file[at] != std::byte{'\n'} && file[at] != std::byte{'\r'}) ++at;
    if (at < file.size()) ++at;
  }
  std::uint64_t value = 0;
  const std::size_t begin = at;
  for (; at < file.size() && file[at] >= std::byte{'0'} && file[at] <= std::byte{'9'} && value < UINT32_MAX;
       ++at)
    value = value * 10 + (std::to_integer<unsigned>(file[at]) - '0');
  if (at == begin || value > UINT32_MAX || at == file.size() || !is_pnm_space(file[at]))
    throw Error(ErrorCode::corrupt, fmt::format("PNM: no number at byte {} of the header", begin));
  return static_cast<std::uint32_t>(value);
}

// Numbers, spaces and comments: TurboJPEG takes any other byte for a space.
void check_text(std::span<const std::byte> text) {
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (comment)
      comment = text[i] != std::byte{'\n'} && text[i] != std::byte{'\r'};
    else if (text[i] == std::byte{'#'})
      comment = true;
    else if (!is_pnm_space(text[i]) && (text[i] < std::byte{'0'} || text[i] > std::byte{'9'}))
      throw Error(ErrorCode::corrupt, fmt::format("PNM: byte {} of the pixels is no part of a number", i));
  }
}

Bitmap parse_pnm(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const char kind = std::to_integer<char>(file[1]);  // detect_format has seen it
  if (kind == '1' || kind == '4') refuse_kind("PNM", "bitmaps (PBM)");
  const bool text = kind == '2' || kind == '3';
  std::size_t at = 2;
  Bitmap bitmap;
  bitmap.width = next_number(file, at);
  bitmap.height = next_number(file, at);
  check_bitmap_size("PNM", bitmap.width, bitmap.height, max_pixels);
  const std::uint32_t most = next_number(file, at);
  if (most != 255) refuse_kind("PNM", fmt::format("values up to {} instead of 255", most));
  ++at;
  const std::uint64_t values =
      std::uint64_t{bitmap.width} * bitmap.height * (kind == '3' || kind == '6' ? 3 : 1);
  const std::uint64_t least = text ? 2 * values - 1 : values;
  if (file.size() - at < least)
    throw Error(ErrorCode::corrupt, fmt::format("PNM: the file is cut off: {} bytes of pixels instead of {}",
                                                file.size() - at, least));
  if (text) check_text(file.subspan(at));
  bitmap.pixels = text ? file.subspan(at) : file.subspan(at, values);
  bitmap.decoder_bytes = bitmap.pixels.size();
  const std::string header = fmt::format("P{}\n{} {}\n255\n", kind, bitmap.width, bitmap.height);
  const std::span<const std::byte> bytes = as_byte_span(header);
  bitmap.header.assign(bytes.begin(), bytes.end());
  return bitmap;
}

// --- both

struct FreeTurbo {
  void operator()(unsigned char* pixels) const noexcept { tjFree(pixels); }
};

StoredImage decode_bitmap(const char* format, const Bitmap& bitmap, const DecodeOptions& options,
                          PixelBuffer& pixels) {
  check_not_cancelled(options);
  const std::size_t stride = std::size_t{bitmap.width} * 3;
  auto share = take_memory(options, 2 * rgb_bytes(bitmap.width, bitmap.height, 1) + bitmap.decoder_bytes);
  const UniqueFd file(memfd_create("bitmap", MFD_CLOEXEC));
  if (file.get() < 0)
    throw Error(ErrorCode::resource, fmt::format("{}: no file in memory: {}{}", format, std::strerror(errno),
                                                 descriptor_advice(errno)));
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  pwrite_all(file.get(), bitmap.header, 0, path);
  pwrite_all(file.get(), bitmap.pixels, bitmap.header.size(), path);

  int width = 0;
  int height = 0;
  int pixel_format = TJPF_RGB;
  const std::unique_ptr<unsigned char, FreeTurbo> loaded(
      tjLoadImage(path.c_str(), &width, 1, &height, &pixel_format, bitmap.from_top ? TJFLAG_BOTTOMUP : 0));
  if (!loaded) throw Error(ErrorCode::corrupt, fmt::format("{}: {}", format, tjGetErrorStr2(nullptr)));
  if (width != static_cast<int>(bitmap.width) || height != static_cast<int>(bitmap.height))
    throw Error(ErrorCode::corrupt, fmt::format("{}: {} x {} pixels instead of {} x {}", format, width,
                                                height, bitmap.width, bitmap.height));
  std::uint8_t* out = pixels.reserve(stride * bitmap.height);
  std::copy_n(loaded.get(), stride * bitmap.height, out);
  return {{out, bitmap.width, bitmap.height, stride}, 1, std::move(share), {}};
}

}  // namespace

ImageInfo read_bmp_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const Bitmap bitmap = parse_bmp(file, max_pixels);
  return {Format::bmp, bitmap.width, bitmap.height, 1};
}

ImageInfo read_pnm_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const Bitmap bitmap = parse_pnm(file, max_pixels);
  return {Format::pnm, bitmap.width, bitmap.height, 1};
}

StoredImage decode_bmp(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  return decode_bitmap("BMP", parse_bmp(file, options.max_pixels), options, pixels);
}

StoredImage decode_pnm(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  return decode_bitmap("PNM", parse_pnm(file, options.max_pixels), options, pixels);
}

std::string turbojpeg_version() { return "TurboJPEG " SHARD_TURBOJPEG_VERSION; }

}  // namespace shard::image
