#include "image/codecs/tiff_file.hpp"

#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "image/codecs/tiff_tags.hpp"
#include "image/metadata/orientation.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

using Message = std::array<char, 400>;

// What libtiff reads from, and what it says. Its callbacks get a pointer to this.
struct TiffClient {
  std::span<const std::byte> file;
  std::uint64_t at = 0;
  bool decoding = false;
  bool cut_tag = false;
  // The first of each; empty: none.
  Message error{};
  Message warning{};
};

TiffClient& client_of(thandle_t handle) noexcept { return *static_cast<TiffClient*>(handle); }

tmsize_t read_bytes(thandle_t handle, void* out, tmsize_t size) noexcept {
  TiffClient& client = client_of(handle);
  if (size <= 0 || client.at >= client.file.size()) return 0;
  const auto count =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(size), client.file.size() - client.at);
  std::memcpy(out, client.file.data() + client.at, static_cast<std::size_t>(count));
  client.at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) noexcept { return 0; }

toff_t seek_to(thandle_t handle, toff_t offset, int whence) noexcept {
  TiffClient& client = client_of(handle);
  client.at = offset + (whence == SEEK_CUR ? client.at : whence == SEEK_END ? client.file.size() : 0);
  return client.at;
}

int close_nothing(thandle_t) noexcept { return 0; }

toff_t size_of(thandle_t handle) noexcept { return client_of(handle).file.size(); }

// libtiff reads samples from there, without a copy; it does not write to files that are opened for reading.
int map_file(thandle_t handle, void** base, toff_t* size) noexcept {
  const std::span<const std::byte> file = client_of(handle).file;
  *base = const_cast<std::byte*>(file.data());
  *size = file.size();
  return 1;
}

void unmap_nothing(thandle_t, void*, toff_t) noexcept {}

void keep_first(Message& message, const char* module, const char* format, va_list arguments) {
  if (message[0] != '\0') return;
  const int length = module == nullptr ? 0 : std::snprintf(message.data(), message.size(), "%s: ", module);
  const auto begin = std::min(static_cast<std::size_t>(std::max(length, 0)), message.size() - 1);
  static_cast<void>(std::vsnprintf(message.data() + begin, message.size() - begin, format, arguments));
}

// Both return 1: the handlers of the process are not called.
int on_error(TIFF*, void* user, const char* module, const char* format, va_list arguments) noexcept {
  keep_first(static_cast<TiffClient*>(user)->error, module, format, arguments);
  return 1;
}

// Of warnings, only those about damaged samples matter: unknown and odd tags, of which most warnings are,
// leave all pixels there.
int on_warning_of(TIFF*, void* user, const char* module, const char* format, va_list arguments) noexcept {
  auto& client = *static_cast<TiffClient*>(user);
  const std::string_view from = module == nullptr ? "" : module;
  const bool harmless = from == "LZWPreDecode" || from.starts_with("JPEGFixupTags");
  if (client.decoding && !harmless) keep_first(client.warning, module, format, arguments);
  if (client.decoding) return 1;
  // The palette, and what may have had the orientation: libtiff does without them.
  Message message{};
  keep_first(message, module, format, arguments);
  const std::string_view text(message.data());
  const bool needed =
      text.find("XMLPacket") != std::string_view::npos || text.find("ColorMap") != std::string_view::npos;
  if (needed && text.find("IO error") != std::string_view::npos) client.cut_tag = true;
  return 1;
}

[[noreturn]] void unsupported(const std::string& what) {
  throw Error(ErrorCode::unsupported, fmt::format("TIFF: {}; convert it to PNG or JPEG first", what));
}

[[noreturn]] void throw_error(const TiffClient& client, std::string_view otherwise) {
  const std::string_view said(client.error.data());
  const bool memory = said.find("emory") != std::string_view::npos ||
                      said.find("No space") != std::string_view::npos ||
                      said.find("Out of") != std::string_view::npos;
  throw Error(memory ? ErrorCode::resource : ErrorCode::corrupt,
              fmt::format("TIFF: {}", said.empty() ? otherwise : said));
}

struct OptionsDeleter {
  void operator()(TIFFOpenOptions* options) const noexcept { TIFFOpenOptionsFree(options); }
};
struct TiffDeleter {
  void operator()(TIFF* tiff) const noexcept { TIFFClose(tiff); }
};
using Handle = std::unique_ptr<TIFF, TiffDeleter>;

// The most that libtiff may allocate at once: what is decoded goes to our memory,
// and its tables are made from what is in the file.
std::uint64_t allocation_bound(std::uint64_t file_bytes) noexcept {
  return (std::uint64_t{64} << 20U) + 4 * file_bytes;
}

void check_is_not_cut(const TiffClient& client) {
  if (client.cut_tag) throw Error(ErrorCode::corrupt, "TIFF: the file is cut off before its directory ends");
}

Handle open_tiff(TiffClient& client) {
  const std::unique_ptr<TIFFOpenOptions, OptionsDeleter> options(TIFFOpenOptionsAlloc());
  if (!options) throw Error(ErrorCode::resource, "TIFF: no memory for the decoder");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                      static_cast<tmsize_t>(allocation_bound(client.file.size())));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &client);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning_of, &client);
  // "c": strips as the file has them.
  Handle tiff(TIFFClientOpenExt("TIFF", "rc", &client, read_bytes, write_nothing, seek_to, close_nothing,
                                size_of, map_file, unmap_nothing, options.get()));
  if (!tiff) throw_error(client, "the file has no valid header and directory");
  check_is_not_cut(client);
  return tiff;
}

constexpr std::uint32_t kMostPages = 65535;
constexpr std::uint32_t kBlocksBetweenPolls = 16;

// A page of camera raw files is a small preview of what cannot be decoded.
// Their first directory says what they are.
void check_is_no_raw(TIFF* tiff) {
  const void* version = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_DNGVERSION, &version) == 1 ||
      TIFFGetField(tiff, TIFFTAG_UNIQUECAMERAMODEL, &version) == 1)
    unsupported("a camera raw file (DNG)");
}

// The file says that there is one. (After a failure libtiff says that the one before was the last.)
void read_next_page(TiffClient& client, TIFF* tiff) {
  client.error[0] = '\0';  // of tags that are not used
  client.cut_tag = false;
  if (TIFFReadDirectory(tiff) != 1) throw_error(client, "a directory is damaged");
}

// Pages are a list in the file: each is reached through those before it.
Handle open_page(TiffClient& client, std::uint32_t number) {
  Handle tiff = open_tiff(client);
  check_is_no_raw(tiff.get());
  for (std::uint32_t at = 0; at < number; ++at) {
    if (TIFFLastDirectory(tiff.get()) != 0)
      throw Error(ErrorCode::not_found, fmt::format("TIFF: page {}: the file has {} {}, counted from 0",
                                                    number, at + 1, at == 0 ? "page" : "pages"));
    read_next_page(client, tiff.get());
  }
  check_is_not_cut(client);
  if (lacks_palette(client.file, TIFFCurrentDirOffset(tiff.get())))
    throw Error(ErrorCode::corrupt, "TIFF: a palette image without a palette (Colormap)");
  return tiff;
}

template <class T>
T field_of(TIFF* tiff, std::uint32_t tag, T otherwise) {
  T value{};
  return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : otherwise;
}

int orientation_of(TIFF* tiff) {
  std::uint16_t orientation = 0;
  if (TIFFGetField(tiff, TIFFTAG_ORIENTATION, &orientation) == 1)
    return orientation >= 1 && orientation <= 8 ? orientation : 1;
  std::uint32_t size = 0;
  const void* xmp = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_XMLPACKET, &size, &xmp) != 1 || xmp == nullptr) return 1;
  return choose_orientation({}, {static_cast<const std::byte*>(xmp), size});
}

std::string_view name_of_photometric(unsigned photometric) noexcept {
  switch (photometric) {
    case PHOTOMETRIC_MASK:
      return "a mask";
    case PHOTOMETRIC_YCBCR:
      return "YCbCr without JPEG compression";
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
    case PHOTOMETRIC_ITULAB:
      return "CIE Lab colours";
    case PHOTOMETRIC_CFA:
    case 34892:  // LinearRaw
      return "camera raw data";
    case PHOTOMETRIC_LOGL:
    case PHOTOMETRIC_LOGLUV:
      return "logarithmic colours (LogLuv)";
    default:
      return "an unknown kind of colours";
  }
}

void check_compression(unsigned compression) {
  constexpr std::array kRead{COMPRESSION_NONE,      COMPRESSION_PACKBITS,  COMPRESSION_CCITTRLE,
                             COMPRESSION_CCITTRLEW, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4,
                             COMPRESSION_LZW,       COMPRESSION_DEFLATE,   COMPRESSION_ADOBE_DEFLATE,
                             COMPRESSION_JPEG,      COMPRESSION_ZSTD};
  const bool read = std::find(kRead.begin(), kRead.end(), static_cast<int>(compression)) != kRead.end();
  if (read && TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) != 0) return;
  const TIFFCodec* codec = TIFFFindCODEC(static_cast<std::uint16_t>(compression));
  unsupported(fmt::format("compression {} ({}) is not read", compression,
                          codec == nullptr ? "unknown" : codec->name));
}

void check_is_no_preview(TIFF* tiff, std::uint32_t number) {
  if ((field_of<std::uint32_t>(tiff, TIFFTAG_SUBFILETYPE, 0) & FILETYPE_REDUCEDIMAGE) != 0)
    unsupported(fmt::format("its {} is a preview of another one (a camera raw file?)",
                            number == 0 ? std::string("first page") : fmt::format("page {}", number)));
}

TiffColor color_of(unsigned photometric, unsigned compression, const TiffPage& page) {
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
      return TiffColor::gray_inverted;
    case PHOTOMETRIC_MINISBLACK:
      return TiffColor::gray;
    case PHOTOMETRIC_RGB:
      return TiffColor::rgb;
    case PHOTOMETRIC_PALETTE:
      return TiffColor::palette;
    case PHOTOMETRIC_SEPARATED:
      return TiffColor::cmyk;
    case PHOTOMETRIC_YCBCR:
      if (compression == COMPRESSION_JPEG && !page.separate && page.samples == 3) return TiffColor::rgb;
      break;
    default:
      break;
  }
  unsupported(
      fmt::format("{} (photometric interpretation {})", name_of_photometric(photometric), photometric));
}

// "Undefined" data are what they are without the field: unsigned integers (TIFF 6.0, section 19).
std::uint16_t sample_format_of(TIFF* tiff) {
  const auto format = field_of<std::uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  return format == SAMPLEFORMAT_VOID ? std::uint16_t{SAMPLEFORMAT_UINT} : format;
}

void check_samples(TIFF* tiff, const TiffPage& page) {
  const auto format = sample_format_of(tiff);
  if (format != SAMPLEFORMAT_UINT)
    unsupported(fmt::format("samples of {} bits that are {}", page.bits,
                            format == SAMPLEFORMAT_INT      ? "signed integers"
                            : format == SAMPLEFORMAT_IEEEFP ? "floating-point numbers"
                                                            : "neither integers nor floating-point numbers"));
  const unsigned colors = page.color == TiffColor::rgb ? 3 : page.color == TiffColor::cmyk ? 4 : 1;
  const unsigned most = page.color == TiffColor::cmyk ? 4 : colors + 1;
  if (page.samples < colors || page.samples > most)
    unsupported(fmt::format("{} bands; for {} {} to {} are read", page.samples,
                            page.color == TiffColor::rgb       ? "RGB"
                            : page.color == TiffColor::cmyk    ? "CMYK"
                            : page.color == TiffColor::palette ? "a palette"
                                                               : "gray",
                            colors, most));
  const bool packed = page.bits == 1 || page.bits == 2 || page.bits == 4;
  const bool whole = page.bits == 8 || (page.bits == 16 && page.color != TiffColor::palette);
  if (!whole && !(packed && page.samples == 1 && colors == 1))
    unsupported(
        fmt::format("{} {} of {} bits", page.samples, page.samples == 1 ? "band" : "bands", page.bits));
  if (page.color == TiffColor::cmyk &&
      field_of<std::uint16_t>(tiff, TIFFTAG_INKSET, INKSET_CMYK) != INKSET_CMYK)
    unsupported("inks other than CMYK");
  if (field_of<std::uint32_t>(tiff, TIFFTAG_IMAGEDEPTH, 1) != 1)
    unsupported("a volume (image depth is not 1)");
}

// Bands that are numbers: everything but indices, inks and chroma.
bool has_plain_bands(TIFF* tiff) {
  std::uint16_t photometric = PHOTOMETRIC_MINISWHITE;
  static_cast<void>(TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric));
  const bool plain = photometric == PHOTOMETRIC_MINISWHITE || photometric == PHOTOMETRIC_MINISBLACK ||
                     photometric == PHOTOMETRIC_RGB;
  return plain && field_of<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1) >= 8;
}

void check_bands(TIFF* tiff, TiffPage& page, std::uint64_t max_pixels) {
  constexpr unsigned kMostBands = 4096;
  if (page.samples < 1 || page.samples > kMostBands)
    unsupported(fmt::format("{} bands; 1 to {} are read", page.samples, kMostBands));
  const auto format = sample_format_of(tiff);
  page.number = format == SAMPLEFORMAT_INT      ? TiffNumber::negative_too
                : format == SAMPLEFORMAT_IEEEFP ? TiffNumber::floating
                                                : TiffNumber::whole;
  const bool known =
      format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_INT || format == SAMPLEFORMAT_IEEEFP;
  const bool floating = page.number == TiffNumber::floating;
  const bool read =
      floating ? page.bits == 16 || page.bits == 32 || page.bits == 64 : page.bits == 8 || page.bits == 16;
  if (!known || !read)
    unsupported(
        fmt::format("samples of {} bits that are {}; integers of 8 and 16 bits and floating-point numbers of "
                    "16, 32 and 64 bits are read",
                    page.bits,
                    floating                                  ? "floating-point numbers"
                    : page.number == TiffNumber::negative_too ? "signed integers"
                    : known                                   ? "unsigned integers"
                            : "neither integers nor floating-point numbers"));
  if (field_of<std::uint32_t>(tiff, TIFFTAG_IMAGEDEPTH, 1) != 1)
    unsupported("a volume (image depth is not 1)");
  page.colors = page.samples;
  std::uint16_t extra_count = 0;
  const std::uint16_t* extra = nullptr;
  if ((page.samples == 2 || page.samples == 4) &&
      TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra_count, &extra) == 1 && extra_count == 1) {
    if (extra[0] == EXTRASAMPLE_ASSOCALPHA)
      unsupported("colours that are multiplied with alpha (associated alpha), whose values are not kept");
    if (extra[0] == EXTRASAMPLE_UNASSALPHA) page.colors = page.samples - 1;
  }
  // The samples twice (turned upright), and as floats where they are converted.
  const std::uint64_t bytes =
      std::uint64_t{page.width} * page.height * page.samples * std::max(page.bits / 8, 4U);
  check_memory_bound(2 * bytes, max_pixels);
}

void read_palette(TIFF* tiff, TiffPage& page) {
  std::array<std::uint16_t*, 3> columns{};
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &columns[0], &columns[1], &columns[2]) != 1)
    throw Error(ErrorCode::corrupt, "TIFF: a palette image without a palette");
  for (std::size_t i = 0; i < std::size_t{1} << page.bits; ++i) {
    const auto high = [&](std::size_t c) { return static_cast<std::uint8_t>(columns[c][i] >> 8U); };
    page.palette.push_back({high(0), high(1), high(2)});
  }
}

// What is read at once, and that its memory is justified by the pixels.
void choose_blocks(TIFF* tiff, unsigned compression, TiffPage& page) {
  page.tiled = TIFFIsTiled(tiff) != 0;
  if (page.tiled) {
    page.block_width = field_of<std::uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0);
    page.block_height = field_of<std::uint32_t>(tiff, TIFFTAG_TILELENGTH, 0);
  } else {
    page.block_width = page.width;
    page.block_height =
        page.separate
            ? std::min(page.height, field_of<std::uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, page.height))
            : 1;
  }
  if (page.block_width == 0 || page.block_height == 0)
    throw Error(ErrorCode::corrupt, "TIFF: strips or tiles without a size");
  const std::uint64_t pixels = std::uint64_t{page.width} * page.height * std::max(1U, page.colors);
  const std::uint64_t row_bytes =
      (std::uint64_t{page.block_width} * (page.separate ? 1 : page.samples) * page.bits + 7) / 8;
  const std::uint64_t bound = memory_bound(pixels);
  if (row_bytes > bound / page.planes() / page.block_height)
    throw Error(ErrorCode::resource,
                fmt::format("TIFF: tiles of {} x {} pixels in an image of {} x {}", page.block_width,
                            page.block_height, page.width, page.height));
  page.block_row_bytes = static_cast<std::size_t>(row_bytes);
  const auto expected =
      static_cast<std::uint64_t>(page.tiled ? TIFFTileRowSize64(tiff) : TIFFScanlineSize64(tiff));
  if (expected != row_bytes)
    throw Error(ErrorCode::corrupt, fmt::format("TIFF: a row has {} bytes, not {}", expected, row_bytes));

  page.memory_bytes = row_bytes * page.block_height * page.planes();
  const std::uint32_t rows =
      page.tiled ? page.block_height
                 : std::min(page.height, field_of<std::uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, page.height));
  switch (compression) {
    case COMPRESSION_JPEG: {
      // Coefficients of files with several scans; libtiff refuses those that take more than 100 MiB.
      constexpr std::uint64_t kMost = std::uint64_t{100} << 20U;
      page.memory_bytes += std::min(kMost, 2 * std::uint64_t{page.block_width} * rows * page.samples);
      break;
    }
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTRLEW:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
      page.memory_bytes += 16 * (std::uint64_t{page.block_width} + 64);  // two rows of runs
      break;
    default:
      break;
  }
  if (page.memory_bytes > bound)
    throw Error(ErrorCode::resource, fmt::format("TIFF: decoding takes {} bytes of memory for {} x {} pixels",
                                                 page.memory_bytes, page.width, page.height));
}

TiffPage describe_page(TIFF* tiff, std::uint64_t max_pixels, TiffMode mode, std::uint32_t number) {
  TiffPage page;
  page.width = field_of<std::uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0);
  page.height = field_of<std::uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0);
  check_pixel_bound(page.width, page.height, max_pixels);
  check_is_no_preview(tiff, number);
  page.orientation = orientation_of(tiff);
  page.bits = field_of<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  page.samples = field_of<std::uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  page.separate = page.samples > 1 && field_of<std::uint16_t>(tiff, TIFFTAG_PLANARCONFIG,
                                                              PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
  const unsigned compression = field_of<std::uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  check_compression(compression);
  std::uint16_t photometric = PHOTOMETRIC_MINISWHITE;  // what Pillow assumes
  static_cast<void>(TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric));
  if (mode == TiffMode::as_stored) {
    page.color = photometric == PHOTOMETRIC_MINISWHITE ? TiffColor::gray_inverted : TiffColor::gray;
    if (!has_plain_bands(tiff))
      unsupported("a palette, inks, chroma or less than 8 bits, whose values are not kept");
    check_bands(tiff, page, max_pixels);
    choose_blocks(tiff, compression, page);
    return page;
  }
  page.color = color_of(photometric, compression, page);
  check_samples(tiff, page);
  if (photometric == PHOTOMETRIC_YCBCR) TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  std::uint16_t extra_count = 0;
  const std::uint16_t* extra = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra_count, &extra) == 1 && extra_count > 0)
    page.associated_alpha = extra[0] == EXTRASAMPLE_ASSOCALPHA && page.color != TiffColor::palette &&
                            page.samples == (page.color == TiffColor::rgb ? 4U : 2U);
  if (page.color == TiffColor::palette) read_palette(tiff, page);
  choose_blocks(tiff, compression, page);
  return page;
}

}  // namespace

struct TiffFile::Impl {
  Impl(std::span<const std::byte> file, std::uint64_t max_pixels, OnWarning choice, TiffMode mode,
       std::uint32_t number)
      : client{file},
        tiff(open_page(client, number)),
        page(describe_page(tiff.get(), max_pixels, mode, number)),
        on_warning(choice) {
    client.error[0] = '\0';  // of tags that are not used
    client.decoding = true;
  }

  TiffClient client;
  Handle tiff;
  TiffPage page;
  OnWarning on_warning;
};

TiffFile::TiffFile(std::span<const std::byte> file, std::uint64_t max_pixels, OnWarning on_warning,
                   TiffMode mode, std::uint32_t page)
    : impl_(std::make_unique<Impl>(file, max_pixels, on_warning, mode, page)) {}
TiffFile::~TiffFile() = default;

const TiffPage& TiffFile::page() const noexcept { return impl_->page; }
bool TiffFile::warned() const noexcept { return impl_->client.warning[0] != '\0'; }

void TiffFile::read_block(std::uint32_t x, std::uint32_t y, unsigned plane, std::uint8_t* out) {
  const TiffPage& page = impl_->page;
  TIFF* tiff = impl_->tiff.get();
  bool complete = false;
  if (page.tiled) {
    const auto size = static_cast<tmsize_t>(page.block_bytes());
    complete = TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, static_cast<std::uint16_t>(plane)),
                                   out, size) == size;
  } else if (page.separate) {
    const auto size =
        static_cast<tmsize_t>(page.block_row_bytes * std::min(page.block_height, page.height - y));
    complete = TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, static_cast<std::uint16_t>(plane)), out,
                                    size) == size;
  } else {
    complete = TIFFReadScanline(tiff, out, y, 0) == 1;
  }
  const TiffClient& client = impl_->client;
  if (!complete || client.error[0] != '\0')
    throw_error(client, fmt::format("the samples of row {} are not complete", y));
  if (warned() && impl_->on_warning != OnWarning::accept)
    throw Error(ErrorCode::corrupt, fmt::format("TIFF: {}", client.warning.data()));
}

void TiffFile::read_blocks(std::uint8_t* samples, const std::atomic<bool>* cancel,
                           const std::function<void(const TiffBlock&)>& take) {
  const TiffPage& page = impl_->page;
  std::uint32_t polls = 0;
  // 64 bits: a last block may reach beyond 2^32.
  for (std::uint64_t y = 0; y < page.height; y += page.block_height) {
    for (std::uint64_t x = 0; x < page.width; x += page.block_width) {
      if (polls++ % kBlocksBetweenPolls == 0 && cancel != nullptr && cancel->load(std::memory_order_relaxed))
        throw Error(ErrorCode::cancelled, "TIFF: decoding was cancelled");
      const auto left = static_cast<std::uint32_t>(x);
      const auto top = static_cast<std::uint32_t>(y);
      for (unsigned plane = 0; plane < page.planes(); ++plane)
        read_block(left, top, plane, samples + plane * page.block_bytes());
      take({left, top, std::min(page.block_width, page.width - left),
            std::min(page.block_height, page.height - top)});
    }
  }
}

std::vector<std::uint32_t> tiff_pages(std::span<const std::byte> file) {
  TiffClient client{file};
  const Handle tiff = open_tiff(client);
  check_is_no_raw(tiff.get());
  std::vector<std::uint32_t> pages;
  for (std::uint32_t number = 0;; ++number) {
    const auto type = field_of<std::uint32_t>(tiff.get(), TIFFTAG_SUBFILETYPE, 0);
    if ((type & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) == 0) pages.push_back(number);
    if (TIFFLastDirectory(tiff.get()) != 0) break;
    if (number + 1 == kMostPages) unsupported(fmt::format("more than {} pages", kMostPages));
    read_next_page(client, tiff.get());
  }
  if (pages.empty()) unsupported("no page that is neither a preview nor a mask");
  return pages;
}

bool is_read_as_stored(std::span<const std::byte> file, std::uint32_t page) {
  TiffClient client{file};
  return has_plain_bands(open_page(client, page).get());
}

std::string tiff_version() {
  std::string_view text = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0\nCopyright ..."
  text = text.substr(0, text.find('\n'));
  return fmt::format("libtiff {}", text.substr(text.rfind(' ') + 1));
}

}  // namespace shard::image
