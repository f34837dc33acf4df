// The profile of docs/format.md: which tensors and metadata a safetensors file needs to be a shard, and where
// they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shard/jpeg_file.hpp"
#include "shard/safetensors.hpp"
#include "shard/shard_writer.hpp"

namespace shard {

inline constexpr std::string_view kProfileKey = "shard.profile";
inline constexpr std::string_view kFieldPrefix = "field.";    // version 2: the kind of a column or field
inline constexpr std::string_view kImagePrefix = "image.";    // version 2: image.NAME.dtype and so on
inline constexpr std::string_view kLargestKey = "largest";    // version 3: LargestSample
inline constexpr std::string_view kShapes = "shapes";         // version 3: the tensor of rows and columns
inline constexpr std::string_view kJpegFiles = "jpeg_files";  // version 3: the files in frames of codec jpeg
inline constexpr std::string_view kHeadDigestKey = "head_digest";
inline constexpr std::string_view kPipelinePrefix = "pipeline.";
inline constexpr std::size_t kDigestDigits = 16;

inline constexpr std::uint64_t kImagesAlignment = 4096;
inline constexpr std::size_t kShapeBytes = 8;                                  // a row of kShapes
inline constexpr std::size_t kJpegFileBytes = 16;                              // a row of kJpegFiles
inline constexpr std::uint64_t kMaxShardHeaderBytes = std::uint64_t{1} << 20;  // of the JSON
inline constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{1} << 30;         // everything before the images
inline constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 32;

// The position of the 16 digits of the head digest in a header's JSON. The bytes that are searched for cannot
// occur inside a string, because quotes are escaped there.
std::optional<std::size_t> find_digest_digits(std::string_view json) noexcept;

// XXH3-64 over the head (all bytes before the images) with the digits at `digits_at` taken as '0'.
std::uint64_t digest_head(std::span<const std::byte> head, std::size_t digits_at);

// "480,640,921600,921600": rows, columns, bytes of a sample, bytes of a frame.
std::string largest_to_text(const LargestSample& largest);
std::optional<LargestSample> largest_from_text(std::string_view text) noexcept;

// Names that columns must not take. (Nor kShapes, if the main images are free, nor kJpegFiles, if their codec
// is jpeg.)
bool is_reserved_tensor(std::string_view name) noexcept;

// "0.485,0.456,0.406": the shortest decimals that read back as the same float32.
std::string floats_to_text(std::span<const float> values);
// Finite numbers only, 1 to kMaxSampleChannels of them.
std::optional<std::vector<float>> floats_from_text(std::string_view text);
std::optional<float> float_from_text(std::string_view text) noexcept;

// Check the options of a writer, and what dataset.json states. Throw invalid_argument.
void check_writer_options(const ShardWriterOptions& options);
void check_provenance(const Provenance& pipeline);
void check_columns(const std::vector<ColumnSpec>& columns);
// Of the fields and what they have to do with the rest: no two tensors have one name.
// The columns were checked.
void check_fields(const DatasetSpec& spec);
inline constexpr std::size_t kMaxFields = 256;

// The version of the profile, and of dataset.json, that this needs, and what of it does not fit into the one
// before, for a message (version 1: nothing).
struct NeededVersion {
  std::uint64_t version = 1;
  std::string_view use;
};
NeededVersion needed_version(const DatasetSpec& spec) noexcept;
inline constexpr std::uint64_t kLastVersion = 3;

// The tensor with the offsets of a ragged or text column.
std::string offsets_name(const ColumnSpec& column);

// The tensors of a further image field: NAME (codec none) or NAME.frames, and NAME. with "checksums",
// "frame_offsets", "frame_checksums", "shapes" (free ones only), "jpeg_files" (codec jpeg) or "padding".
std::string field_tensor(const FieldSpec& field, std::string_view part);
std::string field_images(const FieldSpec& field);

// A row of kJpegFiles.
void store_jpeg_file(std::span<std::byte> bytes, std::size_t at, const jpeg::FrameFile& file);
jpeg::FrameFile load_jpeg_file(std::span<const std::byte> bytes, std::size_t at);

// How much a shard holds.
struct ShardContents {
  std::uint64_t samples = 0;
  std::uint64_t key_bytes = 0;
  // Of each column; those of fixed ones do not count.
  std::vector<std::uint64_t> rows;
  // The rows or frames of the main images, then those of each further field.
  std::vector<std::uint64_t> images_bytes;
  // Of the same; those of fields that are not free do not count.
  std::vector<LargestSample> largest;
};

// The canonical head of a shard: header text with zeros for the digest, and the tensor table. Throws
// invalid_argument when it breaks a cap.
struct HeadLayout {
  std::string text;         // length, JSON, spaces
  SafetensorsHeader table;  // data_begin and all tensors
  // The first image: of a further field if there are any.
  std::uint64_t head_end = 0;
  std::uint64_t images_begin = 0;
  std::uint64_t file_begin(std::string_view tensor) const;  // file offset
};
HeadLayout lay_out_head(const ShardWriterOptions& options, const ShardContents& contents);

// What each sample adds to the head beside its key and its rows of columns that are not fixed.
std::uint64_t head_bytes_per_sample(const DatasetSpec& spec);
// What all samples of a shard may add together: the rest is for the JSON header and padding.
inline constexpr std::uint64_t kMaxHeadRowBytes = kMaxHeadBytes - 2 * kMaxShardHeaderBytes;
// Throws invalid_argument if the JSON header of a shard would be too large, whatever the shard holds: names
// and what is recorded of the source have a bound together. The message names the longest.
void check_header_bytes(const ShardWriterOptions& options);

}  // namespace shard
