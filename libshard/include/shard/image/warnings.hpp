// What is worth a word about an image that is stored: the warnings of libjpeg-turbo (JWRN_* of its jerror.h),
// after which it continues to decode, and images of 16 bits that lose most of what they have.
//
// The table of docs/pixels.md ("Warnings of the JPEG decoder") explains what each one means and why it
// is harmless or not. The decoders of PNG and WebP have no such warnings; they refuse
// the file. libtiff's warnings about image data are `other`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shard::image {

enum class Warning : std::uint8_t {
  adobe_transform,   // JWRN_ADOBE_XFORM: an Adobe marker with an unknown colour transform
  extraneous_bytes,  // JWRN_EXTRANEOUS_DATA: bytes before a marker that belong to nothing
  jfif_version,      // JWRN_JFIF_MAJOR: a JFIF marker of an unknown version
  scan_parameters,   // JWRN_NOT_SEQUENTIAL: a sequential scan with parameters that only progressive ones have
  icc_profile,       // JWRN_BOGUS_ICC: a damaged colour profile
  arithmetic_code,   // JWRN_ARITH_BAD_CODE: damaged arithmetic-coded data
  huffman_code,      // JWRN_HUFF_BAD_CODE: damaged Huffman-coded data
  premature_marker,  // JWRN_HIT_MARKER: a segment of image data ends too early
  premature_end,     // JWRN_JPEG_EOF: the file ends too early
  progression,       // JWRN_BOGUS_PROGRESSION: scans of a progressive file that do not fit together
  restart_marker,    // JWRN_MUST_RESYNC: a restart marker is missing or out of turn
  other,             // JWRN_TOO_MUCH_DATA, and what later versions of the library add
  // Not of the decoder: samples of 16 bits of which the highest two or more are never set, as 12 bits of
  // a sensor, where no DecodeOptions::depth was given. RGB of 8 bits has 64 of 256 levels of them at
  // most. Never a reject.
  few_bits,
};
inline constexpr std::size_t kWarnings = 13;

// "extraneous_bytes"; names are the same in JSON output and in documents.
std::string_view to_string(Warning warning) noexcept;

// True if the pixels are complete anyway, and the same as Pillow's.
bool is_harmless(Warning warning) noexcept;

// Which warnings are accepted; the others are errors (corrupt).
enum class OnWarning : std::uint8_t {
  // Harmless ones. Warnings with missing or invented pixels are errors.
  harmless,
  // All. The pixels are those of Pillow with ImageFile.LOAD_TRUNCATED_IMAGES set: if a file ends too early or
  // is damaged, the decoder fills the missing pixels with gray.
  accept,
  // None.
  reject,
};
constexpr std::array<std::string_view, 3> words_of(OnWarning) { return {"harmless", "accept", "reject"}; }
std::string_view to_string(OnWarning choice) noexcept;
std::optional<OnWarning> on_warning_from_string(std::string_view name) noexcept;

// The kinds of warnings of one image.
class WarningSet {
 public:
  void add(Warning warning) noexcept { bits_ |= 1U << static_cast<unsigned>(warning); }
  void add(const WarningSet& warnings) noexcept { bits_ |= warnings.bits_; }
  bool has(Warning warning) const noexcept { return (bits_ >> static_cast<unsigned>(warning) & 1U) != 0; }
  bool empty() const noexcept { return bits_ == 0; }
  bool operator==(const WarningSet&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

// Number of images per kind of warning. An image with several kinds counts in each of them.
struct WarningCounts {
  std::array<std::uint64_t, kWarnings> images{};
  void add(const WarningSet& warnings) noexcept {
    for (std::size_t i = 0; i < kWarnings; ++i) images[i] += warnings.has(static_cast<Warning>(i)) ? 1 : 0;
  }
  void add(const WarningCounts& counts) noexcept {
    for (std::size_t i = 0; i < kWarnings; ++i) images[i] += counts.images[i];
  }
  bool empty() const noexcept { return *this == WarningCounts{}; }
  bool has(Warning warning) const noexcept { return images[static_cast<std::size_t>(warning)] != 0; }
  bool operator==(const WarningCounts&) const = default;
};

}  // namespace shard::image
