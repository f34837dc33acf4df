// Transform: the one pass from stored samples to a batch: crop, resize, flip, normalise, cast, layout.
//
// The arithmetic is shared by host and CUDA, so that both give the same bits: integers for samples stored as
// u8 (loader/src/transform/arithmetic.hpp), float32 for samples stored as f16, bf16 and f32
// (float_arithmetic.hpp). Parameters are drawn per sample by Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), keyed by (seed, epoch, sample): the same for every rank, device,
// thread count and point of resume.
//
//   stored          crop, flip, layout   resize            delivered dtype       normalization option
//   u8              yes                  in bytes          u8, f16, bf16, f32    any; none: the recorded one
//   floats          yes                  in float32        f16, bf16, f32        the recorded one, which the
//                                                                                values have already; any,
//                                                                                where none is recorded
//   floats, packed  yes                  in bytes          u8, f16, bf16, f32    any; none: the recorded one
//
// Floats of codec packed are bytes in their frames, so these are treated as u8 that are delivered as the
// recorded dtype unless another one is asked for. Other floats are values: a byte cannot be had from them
// exactly, so u8 is refused. A NaN or an infinity reaches the delivered values that see it and no others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "shard/sample_spec.hpp"

namespace shard {

struct DatasetInfo;

enum class CropKind : std::uint8_t {
  none,            // the whole sample
  center,          // torchvision's CenterCrop
  random,          // torchvision's RandomCrop: uniform position
  random_resized,  // torchvision's RandomResizedCrop: 10 draws of area scale and log-uniform aspect, then the
                   // central fallback; bilinear, antialiased when shrinking (at most 32 times). u8: within
                   // one level of Pillow's; floats: torchvision's values but for rounding
};

struct TransformOptions {
  CropKind crop = CropKind::none;
  std::uint32_t crop_height = 0;  // delivered rows; 0: as stored
  std::uint32_t crop_width = 0;
  std::array<double, 2> scale{0.08, 1.0};             // random_resized: share of the area
  std::array<double, 2> ratio{3.0 / 4.0, 4.0 / 3.0};  // random_resized: width / height
  double flip_probability = 0.0;                      // horizontal flip
  std::optional<DType> dtype;                         // delivered: u8, f16, bf16, f32; none: as stored
  std::optional<Layout> layout;                       // delivered; none: as stored
  // For samples delivered as floats (see above); none: what the data set recorded. A fourth channel has mean
  // 0 and std 1. Floats of which none is recorded (mean 0, std 1) become (value - mean) / std, after the
  // resize.
  std::optional<Normalization> normalization;
};

// Where a delivered sample comes from in the stored one: a box that is resized to the crop's size, then
// flipped.
struct SampleView {
  std::uint32_t left = 0;  // of the stored sample, columns [left, left + width)
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool flip = false;
  bool operator==(const SampleView&) const = default;
};

// The draw for one sample. Pure. `stored` and `options` must have passed check_transform().
SampleView draw_view(const SampleSpec& stored, const TransformOptions& options, std::uint64_t seed,
                     std::uint64_t epoch, std::uint64_t sample);

// What is delivered of samples stored one after the other as they are, of which no normalisation is recorded.
// Throws invalid_argument naming the option, its bounds and what to do (crop larger than the sample, floats
// to u8, probabilities outside [0, 1], ...).
SampleSpec check_transform(const SampleSpec& stored, const TransformOptions& options);
// Nothing to compute: the stored bytes are the delivered ones.
bool is_identity(const SampleSpec& stored, const TransformOptions& options);

// One batch of work for Stream::transform: sources[i] (stored.size_bytes() bytes each, or a frame of codec
// packed) with views[i] -> row i of `target`.
struct TransformWork {
  SampleSpec stored;
  SampleSpec delivered;
  Normalization normalization;
  // u8 -> float: (byte / 255 - mean) / std; otherwise byte / 255. float -> float: (value - mean) / std;
  // otherwise the value.
  bool normalize = false;
  std::span<const std::byte* const> sources;  // readable by the device
  std::span<const SampleView> views;
  std::byte* target = nullptr;  // device memory

  // Codec packed (shard/packed_format.hpp): sources[i] is a frame of frame_bytes[i] bytes that holds a sample
  // of `stored`, which is u8; 16-byte aligned on a GPU. Empty: samples as they are.
  std::span<const std::uint64_t> frame_bytes{};
  // Codec packed: entry i of sources.size() is set to 1 when source i is no such frame, which may be found
  // only when the work is done; row i then holds anything. Pinned memory; the caller sets the entries to 0.
  std::uint32_t* broken = nullptr;
  // Codec packed on a GPU, where boxes are resized: device memory for sources.size() stored samples, of which
  // nothing is kept.
  std::byte* unpacked = nullptr;
};

// The same for a data set: what its codec keeps and what it records decide too. Returns the work without its
// samples: what is stored (codec packed: u8), what is delivered, and the normalisation. Throws as above.
TransformWork plan_transform(const DatasetInfo& info, const TransformOptions& options);
// Samples as they lie in the data set are the delivered ones. False with codec packed.
bool is_identity(const DatasetInfo& info, const TransformOptions& options);

}  // namespace shard
