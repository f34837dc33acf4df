#include "shard/image/jpeg_originals.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "image/codecs/jpeg.hpp"
#include "image/codecs/transcode/jpeg_transcode.hpp"
#include "image/metadata/orientation.hpp"
#include "image/pixels/decode_memory.hpp"
#include "image/pixels/memory_errors.hpp"
#include "image/pixels/pixel_buffer.hpp"
#include "jpeg/frame.hpp"
#include "jpeg/header.hpp"
#include "jpeg/lanes/lane_plan.hpp"
#include "jpeg/orient.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kRowsOfCall = 256;           // between two looks at options.cancel
constexpr std::uint64_t kTranscodeBytesOfPixel = 8;  // coefficients of four components

// What a frame, or a baseline file, cannot hold.
bool is_of_another_kind(const Error& error) {
  return error.code() == ErrorCode::unsupported || error.code() == ErrorCode::corrupt;
}

// Each block has two codes at least, so no memory is taken for pixels that cannot be there.
bool has_bytes_enough(const jpeg::FrameFile& file) noexcept {
  const jpeg::Layout layout = jpeg::geometry_of(file);
  const std::uint64_t least_bits = std::uint64_t{layout.mcus()} * layout.blocks_of_mcu * 2;
  return least_bits <= std::uint64_t{file.bytes} * 8 && jpeg::frame_bytes(file) <= UINT32_MAX;
}

}  // namespace

std::optional<jpeg::FrameFile> jpeg_file_of(std::span<const std::byte> front,
                                            std::uint64_t file_bytes) noexcept {
  std::optional<jpeg::FrameFile> file = jpeg::find_frame_file(front);
  if (!file || file_bytes >= jpeg::kMostIndexedBytes) return std::nullopt;
  file->bytes = static_cast<std::uint32_t>(file_bytes);
  file->orientation = jpeg_orientation(front);
  return has_bytes_enough(*file) ? file : std::nullopt;
}

bool is_jpeg_file(const jpeg::FrameFile& file) noexcept {
  try {
    jpeg::check_frame_file(file);
  } catch (const Error&) {
    return false;
  }
  return file.bytes < jpeg::kMostIndexedBytes && has_bytes_enough(file);
}

std::uint64_t jpeg_frame_bytes(const jpeg::FrameFile& file) noexcept { return jpeg::frame_bytes(file); }

struct JpegOriginals::Impl {
  // Sets `sample` to the upright pixels. The reader has opened the file.
  void decode(const JpegHeader& of, std::vector<std::byte>& sample);
  // Whether `file` has these pixels, without a warning.
  bool has_pixels(std::span<const std::byte> file, const DecodeOptions& options,
                  const std::vector<std::byte>& sample);
  void transcode(std::span<const std::byte> file, const DecodeOptions& options, int orientation,
                 const std::vector<std::byte>& sample, JpegOriginal& original);
  JpegOriginal take(std::span<const std::byte> file, const DecodeOptions& options,
                    std::vector<std::byte>& sample);

  // Sets `header`. With the size alone.
  JpegOriginal open(std::span<const std::byte> file, const DecodeOptions& options);
  JpegOriginal take_undecoded(std::span<const std::byte> file, const DecodeOptions& options);

  JpegReader reader;
  JpegHeader header;
  PixelBuffer pixels;                 // of an image that is turned
  std::vector<std::byte> transcoded;  // its pixels
};

void JpegOriginals::Impl::decode(const JpegHeader& of, std::vector<std::byte>& sample) {
  const std::size_t stride = std::size_t{of.width} * 3;
  sample.resize(stride * of.height);
  auto* const out = reinterpret_cast<std::uint8_t*>(sample.data());
  std::uint8_t* const rows = of.orientation == 1 ? out : pixels.reserve(sample.size());
  reader.start(Box{0, 0, of.width, of.height});
  for (std::uint32_t row = 0; row < of.height;)
    row += reader.read_rows(rows + row * stride, stride, kRowsOfCall);
  reader.finish();
  if (of.orientation != 1)
    jpeg::turn_upright({rows, of.width, of.height, 3, stride}, static_cast<std::uint32_t>(of.orientation),
                       out);
}

bool JpegOriginals::Impl::has_pixels(std::span<const std::byte> file, const DecodeOptions& options,
                                     const std::vector<std::byte>& sample) {
  DecodeOptions strict = options;
  strict.on_warning = OnWarning::reject;
  try {
    decode(reader.open(file, strict), transcoded);
  } catch (const Error& error) {
    if (!is_of_another_kind(error)) throw;
    return false;
  }
  return transcoded == sample;
}

// Leaves original.frame empty if it is not possible.
void JpegOriginals::Impl::transcode(std::span<const std::byte> file, const DecodeOptions& options,
                                    int orientation, const std::vector<std::byte>& sample,
                                    JpegOriginal& original) {
  const MemoryBudget::Share share =
      take_memory(options, kTranscodeBytesOfPixel * original.width * original.height + 2 * sample.size());
  try {
    const std::vector<std::byte> baseline = transcode_to_baseline(
        file, {.max_pixels = options.max_pixels, .on_warning = options.on_warning, .cancel = options.cancel});
    JpegFrame frame = make_jpeg_frame(baseline, static_cast<std::uint32_t>(orientation));
    if (!has_pixels(baseline, options, sample)) return;
    original.frame = std::move(frame);
    original.transcoded = true;
  } catch (const Error& error) {
    if (!is_of_another_kind(error)) throw;
  }
}

JpegOriginal JpegOriginals::Impl::open(std::span<const std::byte> file, const DecodeOptions& options) {
  header = reader.open(file, options);
  JpegOriginal original;
  const bool transposed = header.orientation >= 5;
  original.width = transposed ? header.height : header.width;
  original.height = transposed ? header.width : header.height;
  return original;
}

JpegOriginal JpegOriginals::Impl::take(std::span<const std::byte> file, const DecodeOptions& options,
                                       std::vector<std::byte>& sample) {
  JpegOriginal original = open(file, options);
  const JpegHeader of = header;  // has_pixels() reads another one
  {
    const MemoryBudget::Share share =
        take_memory(options, reader.memory_bytes() + rgb_bytes(of.width, of.height, of.orientation));
    try {
      decode(of, sample);
    } catch (...) {
      reader.close();
      throw;
    }
    reader.close();
    if (options.memory != nullptr) pixels.trim();
  }
  original.warnings = reader.warnings();
  try {
    original.frame = make_jpeg_frame(file, static_cast<std::uint32_t>(of.orientation));
  } catch (const Error& error) {
    if (!is_of_another_kind(error)) throw;
  }
  if (!original.frame) transcode(file, options, of.orientation, sample, original);
  return original;
}

JpegOriginal JpegOriginals::Impl::take_undecoded(std::span<const std::byte> file,
                                                 const DecodeOptions& options) {
  JpegOriginal original = open(file, options);
  if (!reader.warnings().empty()) return original;
  try {
    JpegFrame frame = make_jpeg_frame(file, static_cast<std::uint32_t>(header.orientation));
    if (frame.extra_bytes == 0) original.frame = std::move(frame);
  } catch (const Error& error) {
    if (!is_of_another_kind(error)) throw;
  }
  return original;
}

JpegOriginals::JpegOriginals() : impl_(std::make_unique<Impl>()) {}
JpegOriginals::JpegOriginals(JpegOriginals&&) noexcept = default;
JpegOriginals& JpegOriginals::operator=(JpegOriginals&&) noexcept = default;
JpegOriginals::~JpegOriginals() = default;

JpegOriginal JpegOriginals::take_undecoded(std::span<const std::byte> file, const DecodeOptions& options) {
  return with_memory_errors([&] { return impl_->take_undecoded(file, options); });
}

JpegOriginal JpegOriginals::take(std::span<const std::byte> file, const DecodeOptions& options,
                                 std::vector<std::byte>& sample) {
  return with_memory_errors([&] { return impl_->take(file, options, sample); });
}

}  // namespace shard::image
