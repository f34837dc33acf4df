// DatasetSpec: what all samples of a data set have in common. Every shard records it, and so does
// dataset.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/dtype.hpp"
#include "shard/error.hpp"
#include "shard/normalization.hpp"

namespace shard {

inline constexpr std::uint32_t kMaxSampleChannels = 4096;
// Rows or columns of an image.
inline constexpr std::uint32_t kMaxSide = 65535;
// Of one sample: 64 GiB.
inline constexpr std::uint64_t kMaxSampleBytes = std::uint64_t{1} << 36;
// Of a sample with layout tensor.
inline constexpr std::uint64_t kMaxTensorElements = (std::uint64_t{1} << 31) - 1;
inline constexpr std::size_t kMaxTensorAxes = 4;

struct SampleSpec {
  // u8, u16, f16, bf16 or f32; with layout tensor, any.
  DType dtype = DType::f16;
  Layout layout = Layout::nchw;
  // 1 to 4096.
  std::uint32_t channels = 3;
  // Rows and columns, 1 to 65535. Both 0: each sample has its own (is_free()).
  std::uint32_t height = 224;
  std::uint32_t width = 224;
  // Layout tensor only: the extents of one to four axes, followed by zeros. There, channels and height are 1,
  // and width is the number of elements, so the sample is one row. See tensor_spec().
  std::array<std::uint32_t, kMaxTensorAxes> axes{};

  std::uint64_t elements() const noexcept { return std::uint64_t{channels} * height * width; }
  std::uint64_t size_bytes() const noexcept { return elements() * shard::size_bytes(dtype); }
  // [channels, height, width], [height, width, channels] or the axes, depending on the layout.
  std::vector<std::uint32_t> shape() const;
  bool is_tensor() const noexcept { return layout == Layout::tensor; }
  // Images of any size: dtype, channels and layout are those of all samples, and rows and columns are each
  // sample's own. Here both are 0, and so are elements() and size_bytes().
  bool is_free() const noexcept { return height == 0 && width == 0; }
  // The spec of one sample with these rows and columns. *this is free.
  SampleSpec sized(std::uint32_t rows, std::uint32_t columns) const noexcept;
  // Throws invalid_argument, naming the field and its bounds.
  void check() const;
  bool operator==(const SampleSpec&) const = default;
};
// The spec of tensors: layout tensor with these axes. Throws invalid_argument: not 1 to 4 axes, an axis of 0,
// more than kMaxTensorElements.
SampleSpec tensor_spec(DType dtype, std::span<const std::uint64_t> axes);
// The spec with this shape in stored order, which must have three axes if the layout is not tensor; 0 rows
// and 0 columns: it is free. Throws invalid_argument, also for what check() refuses.
SampleSpec spec_of_shape(DType dtype, Layout layout, std::span<const std::uint64_t> shape);

// How the samples were made: "filter" -> "bilinear", "resize" -> "256", ... Keys [a-z_]+, values UTF-8.
using Provenance = std::map<std::string, std::string>;

// What the largest samples of a free image field have. Each number may come from another sample, so the
// memory for any of them is known before one is read.
struct LargestSample {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  // Of a sample before the codec, and of its stored frame.
  std::uint64_t sample_bytes = 0;
  std::uint64_t frame_bytes = 0;
  // Becomes the larger of both in each number.
  void include(const LargestSample& other) noexcept;
  bool operator==(const LargestSample&) const = default;
};

// Which codec samples are stored with: "none", "zstd" with its level, "packed", or "jpeg" with its quality
// (docs/format.md). What encodes and decodes them is a Codec (codec.hpp).
struct CodecSpec {
  enum class Kind : std::uint8_t { none, zstd, packed, jpeg };
  Kind kind = Kind::none;
  // zstd: 1 to 19. jpeg: 1 to 100, the quality of images that are encoded; files that are stored as they are
  // keep theirs.
  int level = 3;

  constexpr CodecSpec() noexcept = default;
  constexpr CodecSpec(Kind of) noexcept
      : kind(of), level(of == Kind::jpeg ? 95 : 3) {}  // NOLINT(google-explicit-constructor)
  constexpr CodecSpec(Kind of, int with_level) noexcept : kind(of), level(with_level) {}
  // Samples of this spec are stored as frames, each of its own length. False for codec none and samples of
  // one size, which are rows of SampleSpec::size_bytes(). Throws invalid_argument if the kind is not one of
  // the above.
  bool framed(const SampleSpec& spec) const;
  // It can store samples of this spec. Codec packed holds images of 8 bits, and of floats that were computed
  // from them, with up to four channels, codec jpeg those of u8 in layout nhwc with one or three; the others
  // hold all. Error: as above.
  bool can_hold(const SampleSpec& spec) const;
  bool operator==(const CodecSpec&) const = default;
};
std::string to_string(const CodecSpec& codec);           // "none", "zstd:3", "packed", "jpeg:95"
CodecSpec codec_spec_from_string(const std::string& s);  // throws invalid_argument

// How many rows of a column belong to a sample.
enum class ColumnKind : std::uint8_t {
  // One.
  fixed,
  // Any number: boxes, keypoints, polygons.
  ragged,
  // Any number of u8 elements, which are UTF-8 text: captions, file names. It has no terminating zero.
  text,
};
std::string_view to_string(ColumnKind kind) noexcept;  // "fixed", "ragged", "text"
std::optional<ColumnKind> column_kind_from_string(std::string_view name) noexcept;

// A value that each sample has beside its image. `labels` is the first of them: fixed, I64 [N] or F32 [N, k].
struct ColumnSpec {
  std::string name;
  DType dtype = DType::i64;
  // Without the sample axis. Empty: one element per row.
  std::vector<std::uint64_t> row_shape;
  ColumnKind kind = ColumnKind::fixed;
  // Bytes of one row.
  std::uint64_t row_bytes() const noexcept;
  bool operator==(const ColumnSpec&) const = default;
};
// "f32 [4]", "ragged f32 [4]" or "text", for messages and tables.
std::string to_string(const ColumnSpec& column);

// What a further image field holds.
enum class FieldRole : std::uint8_t {
  // Values that may be interpolated: depth, another camera, a latent.
  image,
  // Class ids, which must stay what they are: u8 or u16 with one channel.
  mask,
};
std::string_view to_string(FieldRole role) noexcept;  // "image", "mask"
std::optional<FieldRole> field_role_from_string(std::string_view name) noexcept;

// A further image field: an image or tensor that each sample has beside its main one.
// It has a shape and a codec of its own.
struct FieldSpec {
  std::string name;
  FieldRole role = FieldRole::image;
  SampleSpec spec;
  // Of role image, as for the main image. Of masks mean 0 and std 1.
  Normalization normalization;
  CodecSpec codec;
  bool operator==(const FieldSpec&) const = default;
};
// "mask u8 nhwc [224, 224, 1] packed", for messages and tables.
std::string to_string(const FieldSpec& field);
// The position of the field with this name. Empty: there is none.
std::optional<std::size_t> find_field(std::span<const FieldSpec> fields, std::string_view name) noexcept;

struct DatasetSpec {
  SampleSpec spec;
  Normalization normalization;
  Provenance provenance;
  CodecSpec codec;
  // 16 hexadecimal digits over all options that shape the bytes.
  std::string fingerprint;
  std::vector<ColumnSpec> columns{{"labels", DType::i64, {}}};
  // Further image fields, in the order in which they are stored.
  std::vector<FieldSpec> fields{};
};

// The first thing that two specs state differently, as text for a message.
struct SpecDifference {
  std::string what;  // "sample", "codec", "fingerprint", "normalization", "provenance", "columns" or "fields"
  std::string found;
  std::string stated;
  bool operator==(const SpecDifference&) const = default;
};
// Empty if they are equal. The order of the columns does not count.
std::optional<SpecDifference> difference(const DatasetSpec& found, const DatasetSpec& stated);

}  // namespace shard
