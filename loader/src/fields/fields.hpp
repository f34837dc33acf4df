// Which further image fields a batch delivers, and how each of them is made.
//
//   stored     transform: cast and layout, for the whole sample
//   nearest    follow: box, resize, flip and steps in one look-up ─▶ [transform: cast, normalise, layout]
//   bilinear   transform: box, resize, flip, and all of the above if the view has no operations
//              else ─▶ follow: steps ─▶ [transform: cast, normalise, layout]
//
// Frames of codec packed are decoded before, once for all views. Samples of any size have the sizes of their
// images, and what is delivered has the size of the images' view in that batch.
// [ ]: left out if the pixels are what is delivered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/stored_form.hpp"
#include "shard/loader/loader.hpp"

namespace shard {

// How a field is delivered with one view. The works have no samples of a batch; if batches differ in size,
// what is delivered is the most.
struct FieldView {
  // From the stored sample, with the view's crop: to what is delivered, or if follows, to pixels.
  // Not used for nearest.
  TransformWork from_stored;
  // From pixels of the stored dtype to what is delivered.
  TransformWork from_pixels;
  // Height, width, layout and sampling of Stream::follow().
  TargetWork follow;
  bool follows = false;
  bool converts = false;
  SampleSpec delivered;
  bool is_mask = false;
  // Of a delivered sample of these rows and columns. Masks have no axis of channels.
  std::vector<std::uint64_t> shape(std::uint32_t height, std::uint32_t width) const;
  // Of a batch, at most.
  std::uint64_t delivered_bytes = 0;
  // Bytes of the pixels that are neither stored nor delivered: what transform or follow leave for the next
  // step, and the scratch of follow.
  std::uint64_t pixels_bytes = 0;
  std::uint64_t between_bytes = 0;
  std::uint64_t scratch_bytes = 0;
};

struct DeliveredField {
  std::string name;
  std::size_t field = 0;  // in DatasetInfo::fields
  FieldOptions options;
  std::vector<FieldView> views;
};

// In the order of the names. Errors: invalid_argument, naming field, option and what is possible.
std::vector<DeliveredField> delivered_fields(const DatasetInfo& info, const LoaderOptions& options);
// The forms of the images and of the delivered fields, in this order.
StoredForms stored_forms(const DatasetInfo& info, const LoaderOptions& options);
// True if anything is delivered that follows the images: fields, boxes, keypoints, matrices.
bool has_targets(const LoaderOptions& options) noexcept;
// Throws invalid_argument if targets cannot follow what the views do (AugMix, mixup).
void check_targets(const LoaderOptions& options);

// Device memory that making the fields of a batch takes beside what is delivered. All slots share it.
struct FieldMemory {
  std::uint64_t decoded_bytes = 0;  // samples of codec packed: of a batch, or of a part if of any size
  std::uint64_t pixels_bytes = 0;
  std::uint64_t between_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t size_bytes() const noexcept {
    return decoded_bytes + pixels_bytes + between_bytes + scratch_bytes;
  }
};
FieldMemory field_memory(const DatasetInfo& info, const LoaderOptions& options);

}  // namespace shard
