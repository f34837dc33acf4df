#include "image/codecs/transcode/jpeg_transcode.hpp"

#include <fmt/format.h>

#include <string_view>

#include "image/codecs/jpeg_errors.hpp"
#include "image/pixels/limits.hpp"
#include "jpeg/marker_codes.hpp"
#include "libjpeg/output.hpp"
#include "shard/error.hpp"

namespace shard::image {
namespace {

constexpr int kMostScansToRead = 64;  // as JpegReader

struct Metadata {
  int marker = 0;
  std::string_view text;
};

// All APPn and comments up to EOI, also those between scans. libjpeg would save them as a list that it walks
// for each of them.
std::vector<Metadata> metadata_of(std::span<const std::byte> file) {
  std::vector<Metadata> found;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (std::size_t at = text.find('\xFF'); at < text.size() - 1; at = text.find('\xFF', at)) {
    const auto marker = static_cast<std::uint8_t>(text[++at]);
    if (marker == jpeg::kMarkerEoi) break;
    const bool alone = marker <= 0x01 || (marker >= jpeg::kMarkerRst0 && marker <= jpeg::kMarkerSoi);
    if (alone || marker == 0xFF || text.size() - at < 3) continue;
    const auto byte = [&](std::size_t i) { return std::size_t{static_cast<std::uint8_t>(text[i])}; };
    const std::size_t size = byte(at + 1) << 8U | byte(at + 2);
    if (size < 2 || size > text.size() - at - 1) continue;
    if (jpeg::is_ancillary(marker)) found.push_back({marker, text.substr(at + 3, size - 2)});
    at += 1 + size;
  }
  return found;
}

// Baseline of one scan, from the coefficients of a file.
class Transcoder {
 public:
  explicit Transcoder(const TranscodeOptions& options) : options_(options) {
    errors_.reset(options.on_warning);
    source_.err = target_.err = errors_.manager();
    progress_.progress_monitor = on_progress;
    errors_.guard([this] {
      jpeg_create_decompress(&source_);
      jpeg_create_compress(&target_);
    });
    source_.client_data = this;
    source_.progress = &progress_;
  }
  Transcoder(const Transcoder&) = delete;
  Transcoder& operator=(const Transcoder&) = delete;
  ~Transcoder() {
    jpeg_destroy_compress(&target_);
    jpeg_destroy_decompress(&source_);
  }

  void read(std::span<const std::byte> file);
  std::vector<std::byte> write(const std::vector<Metadata>& metadata);

 private:
  static void on_progress(j_common_ptr common);
  void check_coefficients() const;
  void copy_markers(const std::vector<Metadata>& metadata);

  const TranscodeOptions options_;
  JpegErrors errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct source_{};
  jpeg_compress_struct target_{};
  jvirt_barray_ptr* coefficients_ = nullptr;
  libjpeg::Output bytes_;
};

void Transcoder::on_progress(j_common_ptr common) {
  auto* self = static_cast<Transcoder*>(common->client_data);
  if (self->options_.cancel != nullptr && self->options_.cancel->load(std::memory_order_relaxed))
    self->errors_.cancel();
  if (self->source_.input_scan_number > kMostScansToRead)
    self->errors_.too_much("more than 64 scans, each a pass over the whole image");
}

void Transcoder::read(std::span<const std::byte> file) {
  errors_.guard([&] {
    jpeg_mem_src(&source_, reinterpret_cast<const unsigned char*>(file.data()),
                 static_cast<unsigned long>(file.size()));
    jpeg_read_header(&source_, TRUE);
  });
  check_pixel_bound(source_.image_width, source_.image_height, options_.max_pixels);
  // Up to EOI. The coefficients are source_'s until it is destroyed.
  errors_.guard([&] { coefficients_ = jpeg_read_coefficients(&source_); });
  check_coefficients();
}

void Transcoder::check_coefficients() const {
  int blocks = 0;
  for (int c = 0; c < source_.num_components; ++c) {
    blocks += source_.comp_info[c].h_samp_factor * source_.comp_info[c].v_samp_factor;
    if (!source_.progressive_mode || source_.coef_bits == nullptr) continue;
    for (int k = 0; k < DCTSIZE2; ++k)
      if (source_.coef_bits[c][k] != 0)
        throw Error(ErrorCode::unsupported,
                    fmt::format("JPEG: not to be made baseline: a progressive file without the last scan of "
                                "coefficient {} of component {}, which libjpeg smooths",
                                k, c));
  }
  if (source_.num_components > 1 && blocks > D_MAX_BLOCKS_IN_MCU)
    throw Error(ErrorCode::unsupported,
                fmt::format("JPEG: not to be made baseline: {} blocks per MCU; {} are "
                            "possible",
                            blocks, D_MAX_BLOCKS_IN_MCU));
}

// libjpeg writes JFIF's and Adobe's marker itself. Runs under the guard.
void Transcoder::copy_markers(const std::vector<Metadata>& metadata) {
  using namespace std::string_view_literals;
  for (const auto& [marker, text] : metadata) {
    if (target_.write_JFIF_header && marker == JPEG_APP0 && text.starts_with("JFIF\0"sv)) continue;
    if (target_.write_Adobe_marker && marker == JPEG_APP0 + 14 && text.starts_with("Adobe"sv)) continue;
    jpeg_write_marker(&target_, marker, reinterpret_cast<const JOCTET*>(text.data()),
                      static_cast<unsigned>(text.size()));
  }
}

std::vector<std::byte> Transcoder::write(const std::vector<Metadata>& metadata) {
  if (!bytes_.attach(target_)) throw Error(ErrorCode::resource, "JPEG: no memory for the baseline file");
  try {
    errors_.guard([&] {
      jpeg_copy_critical_parameters(&source_, &target_);
      // What decoders conclude the colours from stays as it is: CMYK without Adobe's marker is another thing.
      target_.write_JFIF_header = source_.saw_JFIF_marker;
      target_.write_Adobe_marker = source_.saw_Adobe_marker;
      target_.arith_code = FALSE;
      target_.optimize_coding = TRUE;
      target_.restart_interval = 0;
      jpeg_write_coefficients(&target_, coefficients_);
      copy_markers(metadata);
      jpeg_finish_compress(&target_);
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    // The file was read without one: it has what only other kinds of JPEG may have.
    throw Error(ErrorCode::unsupported, fmt::format("JPEG: not to be made baseline: {}", error.what()));
  }
  return bytes_.take();
}

}  // namespace

std::vector<std::byte> transcode_to_baseline(std::span<const std::byte> file,
                                             const TranscodeOptions& options) {
  Transcoder transcoder(options);
  transcoder.read(file);
  return transcoder.write(metadata_of(file));
}

}  // namespace shard::image
