#include "transform/check_work.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"
#include "transform/arithmetic.hpp"

namespace shard {

void check_work(const TransformWork& work) {
  auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "transform: " + message);
  };
  work.stored.check();
  work.delivered.check();
  if (work.stored.channels != work.delivered.channels)
    refuse(fmt::format("{} stored and {} delivered channels; they must be equal", work.stored.channels,
                       work.delivered.channels));
  const bool floats = is_float(work.delivered.dtype);
  const bool values =
      work.stored.dtype == DType::u8 || work.stored.dtype == DType::u16 || is_float(work.stored.dtype);
  if (work.stored.dtype != work.delivered.dtype && !(floats && values))
    refuse(fmt::format("stored {} cannot be delivered as {}", to_string(work.stored.dtype),
                       to_string(work.delivered.dtype)));
  if (work.stored.is_tensor() &&
      (work.stored.axes != work.delivered.axes || work.normalize || !work.delivered.is_tensor()))
    refuse("tensors keep their axes and are not normalised");
  if (work.stored.is_tensor() != work.delivered.is_tensor()) refuse("images are not delivered as tensors");
  if (work.crops.size() != work.sources.size())
    refuse(fmt::format("{} sources and {} crops; each source needs one", work.sources.size(),
                       work.crops.size()));
  if (work.target == nullptr && !work.sources.empty()) refuse("there is no target");
  if (work.frame_bytes.empty()) return;
  if (work.frame_bytes.size() != work.sources.size())
    refuse(fmt::format("{} sources and the bytes of {} frames; each source needs them", work.sources.size(),
                       work.frame_bytes.size()));
  if (work.stored.dtype != DType::u8)
    refuse(fmt::format("frames hold u8 samples, not {}", to_string(work.stored.dtype)));
  if (work.broken == nullptr) refuse("there is no place to say which frames are broken");
}

void check_crop(const TransformWork& work, std::size_t row) {
  const SampleCrop& crop = work.crops[row];
  const SampleSpec& stored = work.stored;
  const SampleSpec& delivered = work.delivered;
  auto refuse = [row](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, fmt::format("transform: row {}: {}", row, message));
  };
  if (work.sources[row] == nullptr) refuse("there is no source");
  if (crop.width < 1 || crop.height < 1 || crop.width > stored.width || crop.height > stored.height ||
      crop.left > stored.width - crop.width || crop.top > stored.height - crop.height)
    refuse(fmt::format(
        "the box of {} x {} at row {}, column {} is not inside the stored {} x {} (rows x columns)",
        crop.height, crop.width, crop.top, crop.left, stored.height, stored.width));
  if (stored.is_tensor() && (crop.flip || resizes(work, crop)))
    refuse("tensors are neither cropped nor flipped");
  if (!resizes(work, crop)) return;
  if (delivered.height > kMaxResized || delivered.width > kMaxResized ||
      crop.height > kMaxShrink * delivered.height || crop.width > kMaxShrink * delivered.width)
    refuse(fmt::format(
        "{} x {} cannot be resized to {} x {}: at most {} rows and columns, shrunk at most {} times",
        crop.height, crop.width, delivered.height, delivered.width, kMaxResized, kMaxShrink));
}

}  // namespace shard
