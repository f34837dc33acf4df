// Targets: what a batch delivers beside images that must follow them: masks, depth, a second camera, boxes,
// keypoints. All of them go through the crop, resize, flip and geometric operations of each view, and through
// no operation on colours.
//
// Everything here is plain data. Errors of options: invalid_argument, naming option, field or column,
// value and bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/loader/augment.hpp"
#include "shard/loader/mix.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

enum class FieldSampling : std::uint8_t {
  // Each value is one that was stored, or the fill. Bit for bit what torchvision does to
  // tv_tensors.Mask. For masks.
  nearest,
  // Interpolated, antialiased when a resize shrinks, whatever the filter of the images is. For depth and
  // cameras; not for masks.
  bilinear,
  // As stored, without crop and flip: latents, and fields of another size than the images.
  stored,
};
constexpr std::array<std::string_view, 3> words_of(FieldSampling) {
  return {"nearest", "bilinear", "stored"};
}

// How a further image field is delivered with each view.
struct FieldOptions {
  FieldSampling sampling = FieldSampling::nearest;
  // The stored value of places outside of the sample: of operations, letterbox, padded and crops that are
  // larger than their sample. For instance an index that a loss ignores. u8: 0 to 255; u16: 0 to 65535.
  double fill = 0;
  // As in TransformOptions. Masks have none of them: they are delivered as stored, [batch, row, column].
  std::optional<DType> dtype{};
  std::optional<Layout> layout{};
  std::optional<Normalization> normalization{};
};

// What the four numbers of a delivered box are; c: centre.
// Stored boxes are xyxy, in pixels of the stored sample.
enum class BoxFormat : std::uint8_t { xyxy, xywh, cxcywh };
constexpr std::array<std::string_view, 3> words_of(BoxFormat) { return {"xyxy", "xywh", "cxcywh"}; }

// How a ragged column of boxes, f32 [4], is delivered: moved, clipped, and without boxes of which too little
// is left. Those that stay keep their order, and the column's counts (or offsets) say how many there are.
struct BoxOptions {
  BoxFormat format = BoxFormat::xyxy;
  // Pixels of the view: both sides of a box, and their product.
  // Both as in torchvision's SanitizeBoundingBoxes.
  double min_size = 1;
  double min_area = 1;
  // The share of the box that is not clipped, 0 to 1.
  double min_visibility = 0;
  // Ragged columns with a row for each box, which lose the same rows.
  // None: those of box_labels, areas, crowd and keypoints that there are.
  std::optional<std::vector<std::string>> along{};
};

// How a column of keypoints is delivered: f32 [2], [3], [k, 2] or [k, 3], x, y and visibility. Points
// that have left the sample become 0, 0, 0, as those that are not labelled (visibility 0). Without a
// visibility they become NaN.
struct KeypointOptions {
  // Points that change places if the sample is mirrored: left and right eye.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> swap{};
};

// One batch of work for Stream::follow: row i of `target` is made of sources[i], which has
// stored.size_bytes() bytes. Without codec, and not of layout tensor.
//
//   nearest    box, resize, placement, flip, then the steps: one look-up for each pixel
//   bilinear   the steps only. Sources have the size of the view. Each step rounds to the stored dtype, as in
//              torchvision.
struct TargetWork {
  SampleSpec stored;
  // Of a delivered sample, whose dtype and channels are the stored ones.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  Layout layout = Layout::nchw;
  bool bilinear = false;
  // In stored values.
  float fill = 0;
  // Readable by the device.
  std::span<const std::byte* const> sources;
  // Nearest: as many as sources. Bilinear: empty.
  std::span<const SampleCrop> crops;
  // Nearest: rows and columns of each source, if stored.is_free(); else empty.
  std::span<const SampleSize> sizes{};
  // Geometric instructions: those of row i are steps[begins[i]] to steps[begins[i + 1]].
  // begins: sources.size() + 1 entries.
  std::span<const Instruction> steps;
  std::span<const std::uint32_t> begins;
  // Nearest: cutmix, as in TransformWork. Empty, or sources.size() / 2 entries, none of which is mixup.
  std::span<const MixPair> pairs{};
  // Device memory. Bilinear: sources may be in neither of them;
  // scratch is as large as the target, and used only during the work.
  std::byte* target = nullptr;
  std::byte* scratch = nullptr;

  // Of a row of `target`.
  std::uint64_t row_bytes() const noexcept {
    return std::uint64_t{stored.channels} * height * width * size_bytes(stored.dtype);
  }
};

}  // namespace shard
