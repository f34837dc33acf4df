#include "image/codecs/gif.hpp"

#include <fmt/format.h>
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "image/pixels/decode_memory.hpp"
#include "image/pixels/limits.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kGifRowsBetweenPolls = 64;
using GifColors = std::array<std::array<std::uint8_t, 3>, 256>;

// What giflib reads from.
struct GifSource {
  std::span<const std::byte> file;
  std::size_t at = 0;
};

int read_gif_bytes(GifFileType* gif, GifByteType* out, int size) noexcept {
  auto& source = *static_cast<GifSource*>(gif->UserData);
  const std::size_t count =
      std::min(static_cast<std::size_t>(std::max(size, 0)), source.file.size() - source.at);
  std::memcpy(out, source.file.data() + source.at, count);
  source.at += count;
  return static_cast<int>(count);
}

[[noreturn]] void throw_gif_error(int code, const char* otherwise) {
  const char* said = code == 0 ? nullptr : GifErrorString(code);
  throw Error(code == D_GIF_ERR_NOT_ENOUGH_MEM ? ErrorCode::resource : ErrorCode::corrupt,
              fmt::format("GIF: {}", said == nullptr ? otherwise : said));
}

struct GifDeleter {
  void operator()(GifFileType* gif) const noexcept { DGifCloseFile(gif, nullptr); }
};

struct FirstGifFrame {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// A file up to the pixels of its first frame.
class GifReader {
 public:
  GifReader(std::span<const std::byte> file, std::uint64_t max_pixels) : source_{file} {
    int error = 0;
    gif_.reset(DGifOpen(&source_, read_gif_bytes, &error));
    if (!gif_) throw_gif_error(error, "the header is damaged");
    find_frame();
    const GifImageDesc& image = gif_->Image;
    frame = {static_cast<std::uint32_t>(image.Left), static_cast<std::uint32_t>(image.Top),
             static_cast<std::uint32_t>(image.Width), static_cast<std::uint32_t>(image.Height)};
    width = std::max(static_cast<std::uint32_t>(gif_->SWidth), frame.left + frame.width);
    height = std::max(static_cast<std::uint32_t>(gif_->SHeight), frame.top + frame.height);
    check_pixel_bound(width, height, max_pixels);
    if (frame.width == 0 || frame.height == 0)
      throw Error(ErrorCode::corrupt,
                  fmt::format("GIF: the first frame has no pixels: {} x {}", frame.width, frame.height));
  }

  // The next row that the file has, of frame.width indices.
  void read_row(std::uint8_t* indices) {
    if (DGifGetLine(gif_.get(), indices, static_cast<int>(frame.width)) == GIF_ERROR)
      throw_gif_error(gif_->Error, "the image data are damaged");
  }
  // Instead of the rows: whether all codes up to the last pixel exist. giflib makes pixels of others too.
  void check_codes() {
    constexpr std::size_t kMostCodes = 4096;
    std::vector<std::uint32_t> pixels_of(kMostCodes, 1);  // of a code
    const std::size_t clear = std::size_t{1} << code_bits_;
    std::size_t next = clear + 2;  // what the code after this one will define
    constexpr std::size_t kNone = SIZE_MAX;
    std::size_t last = kNone;  // the code before, since the table was cleared
    const std::uint64_t all = std::uint64_t{frame.width} * frame.height;
    for (std::uint64_t pixels = 0; pixels < all;) {
      int read = 0;
      if (DGifGetLZCodes(gif_.get(), &read) == GIF_ERROR)
        throw_gif_error(gif_->Error, "the image data are damaged");
      if (read < 0) throw Error(ErrorCode::corrupt, "GIF: the image data end too early");
      const auto code = static_cast<std::size_t>(read);
      if (code == clear) {
        next = clear + 2;
        last = kNone;
        continue;
      }
      if (code >= kMostCodes || code == clear + 1 || (last == kNone ? code > clear : code > next))
        throw Error(ErrorCode::corrupt,
                    fmt::format("GIF: the image data are damaged: code {} is not defined", code));
      if (last != kNone && next < kMostCodes) pixels_of[next++] = pixels_of[last] + 1;
      pixels += pixels_of[code];
      last = code;
    }
  }
  bool interlaced() const noexcept { return gif_->Image.Interlace; }
  std::uint8_t background() const noexcept { return transparent_.value_or(0); }

  // The colour of each index. Black behind the palette; gray without one, and, as in Pillow,
  // with one of grays in order.
  GifColors colors() const {
    GifColors colors{};
    const ColorMapObject* map = gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    bool gray = true;
    for (int i = 0; map != nullptr && i < std::min(map->ColorCount, 256); ++i) {
      const GifColorType& color = map->Colors[i];
      colors[static_cast<std::size_t>(i)] = {color.Red, color.Green, color.Blue};
      gray = gray && color.Red == i && color.Green == i && color.Blue == i;
    }
    for (std::size_t i = 0; gray && i < colors.size(); ++i) colors[i].fill(static_cast<std::uint8_t>(i));
    return colors;
  }

  std::uint32_t width = 0;
  std::uint32_t height = 0;
  FirstGifFrame frame;

 private:
  void find_frame() {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    while (type != IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetRecordType(gif_.get(), &type) == GIF_ERROR) {
        if (gif_->Error != D_GIF_ERR_WRONG_RECORD) throw_gif_error(gif_->Error, "the file is cut off");
        continue;  // bytes between blocks are passed over
      }
      if (type == TERMINATE_RECORD_TYPE) throw Error(ErrorCode::corrupt, "GIF: the file has no image");
      if (type == EXTENSION_RECORD_TYPE) read_extension();
    }
    if (DGifGetImageDesc(gif_.get()) == GIF_ERROR) throw_gif_error(gif_->Error, "the first frame is damaged");
    code_bits_ = std::to_integer<unsigned>(source_.file[source_.at - 1]);  // at most 8: giflib has checked it
  }

  void read_extension() {
    int code = 0;
    GifByteType* block = nullptr;  // its length, then its bytes
    int status = DGifGetExtension(gif_.get(), &code, &block);
    if (status == GIF_OK && block != nullptr && code == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4 &&
        (block[1] & 1U) != 0)
      transparent_ = block[4];
    while (status == GIF_OK && block != nullptr) status = DGifGetExtensionNext(gif_.get(), &block);
    if (status == GIF_ERROR) throw_gif_error(gif_->Error, "an extension is damaged");
  }

  GifSource source_;
  std::unique_ptr<GifFileType, GifDeleter> gif_;
  std::optional<std::uint8_t> transparent_;
  unsigned code_bits_ = 0;
};

// Calls `take` with each row of a frame, in the order of the file: all, or every 8th, the ones between, ...
template <class Take>
void for_gif_rows(std::uint32_t height, bool interlaced, const Take& take) {
  constexpr std::array<std::array<std::uint32_t, 2>, 4> kPasses{{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  if (!interlaced)
    for (std::uint32_t y = 0; y < height; ++y) take(y);
  else
    for (const auto& [first, step] : kPasses)
      for (std::uint32_t y = first; y < height; y += step) take(y);
}

}  // namespace

ImageInfo read_gif_info(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const GifReader reader(file, max_pixels);
  return {Format::gif, reader.width, reader.height, 1};
}

StoredImage decode_gif(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels) {
  GifReader(file, options.max_pixels).check_codes();
  GifReader reader(file, options.max_pixels);
  const FirstGifFrame& frame = reader.frame;
  auto share = take_memory(options, rgb_bytes(reader.width, reader.height, 1));
  const std::size_t stride = std::size_t{reader.width} * 3;
  std::uint8_t* out = pixels.reserve(stride * reader.height);
  const GifColors colors = reader.colors();
  const auto put = [&](std::uint8_t* rgb, std::uint8_t index) {
    std::copy(colors[index].begin(), colors[index].end(), rgb);
  };
  if (frame.width != reader.width || frame.height != reader.height)
    for (std::size_t at = 0; at < stride * reader.height; at += 3) put(out + at, reader.background());

  std::vector<std::uint8_t> indices(frame.width);
  std::uint32_t polls = 0;
  for_gif_rows(frame.height, reader.interlaced(), [&](std::uint32_t y) {
    if (polls++ % kGifRowsBetweenPolls == 0 && options.cancel != nullptr &&
        options.cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "GIF: decoding was cancelled");
    reader.read_row(indices.data());
    std::uint8_t* row = out + (std::size_t{frame.top} + y) * stride + std::size_t{frame.left} * 3;
    for (const std::uint8_t index : indices) {
      put(row, index);
      row += 3;
    }
  });
  return {{out, reader.width, reader.height, stride}, 1, std::move(share), {}};
}

std::string gif_version() {
  return fmt::format("giflib {}.{}.{}", GIFLIB_MAJOR, GIFLIB_MINOR, GIFLIB_RELEASE);
}

}  // namespace shard::image
