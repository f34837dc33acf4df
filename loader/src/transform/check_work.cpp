#include "transform/check_work.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"
#include "transform/arithmetic.hpp"
#include "transform/exact/exact_filter.hpp"

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
  if (work.sizes.size() != (work.stored.is_free() ? work.sources.size() : 0))
    refuse(fmt::format("{} sources and {} sizes; each sample of any size needs one, and others have none",
                       work.sources.size(), work.sizes.size()));
  if (work.stored.is_free() && !work.exact) refuse("samples of any size are resized exactly only");
  if (work.exact && work.stored.is_tensor()) refuse("tensors are not resized");
  if (work.delivered.is_free() && (work.frame_bytes.empty() || work.delivered != work.stored ||
                                   work.stored.layout != Layout::nhwc || !work.exact || !work.begins.empty()))
    refuse("what is delivered has no size, as only frames may have that are just decoded");
  if (work.tokens.size() != (work.patch != 0 ? work.sources.size() : 0))
    refuse(fmt::format("{} sources and the first patches of {}", work.sources.size(), work.tokens.size()));
  if (work.patch != 0 && (!work.exact || work.delivered.height != work.patch ||
                          work.delivered.width != work.patch || work.delivered.layout != Layout::nhwc))
    refuse("patches are square, nhwc and resized exactly");
  if (work.files.size() != (work.files.empty() ? 0 : work.frame_bytes.size()))
    refuse(fmt::format("{} frames and what {} of them have; codec jpeg needs it of each",
                       work.frame_bytes.size(), work.files.size()));
  if (work.frame_bytes.empty()) return;
  if (work.frame_bytes.size() != work.sources.size())
    refuse(fmt::format("{} sources and the bytes of {} frames; each source needs them", work.sources.size(),
                       work.frame_bytes.size()));
  if (work.stored.dtype != DType::u8)
    refuse(fmt::format("frames hold u8 samples, not {}", to_string(work.stored.dtype)));
  if (!work.files.empty() && work.stored.layout != Layout::nhwc && work.stored.channels > 1)
    refuse("frames of codec jpeg hold nhwc samples");
  if (work.broken == nullptr) refuse("there is no place to say which frames are broken");
}

namespace {

// The box was found to be inside the sample.
void check_placement(const TransformWork& work, std::size_t row) {
  const SampleCrop& crop = work.crops[row];
  const std::uint32_t height = resized_height(work, crop);
  const std::uint32_t width = resized_width(work, crop);
  auto refuse = [row](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, fmt::format("transform: row {}: {}", row, message));
  };
  if (work.patch != 0 && (crop.resized_height == 0 || crop.resized_height % work.patch != 0 ||
                          crop.resized_width % work.patch != 0 || crop.row != 0 || crop.column != 0))
    refuse(fmt::format("{} x {} are not whole patches of {}", crop.resized_height, crop.resized_width,
                       work.patch));
  if ((crop.resized_height == 0) != (crop.resized_width == 0))
    refuse(fmt::format("resized to {} x {}: both or none are 0", crop.resized_height, crop.resized_width));
  // More than a side of kMaxResized makes of the other side of any sample.
  constexpr std::int32_t kMost = 1 << 30;
  if (height > kMost || width > kMost || crop.row > kMost || crop.row < -kMost || crop.column > kMost ||
      crop.column < -kMost)
    refuse(fmt::format("{} x {} at row {}, column {} of the view is too far away", height, width, crop.row,
                       crop.column));
  if (exact::most_taps(work.filter, crop.height, height) > exact::kMaxTaps ||
      exact::most_taps(work.filter, crop.width, width) > exact::kMaxTaps)
    refuse(fmt::format("{} x {} cannot be resized to {} x {}: an output would see more than {} pixels",
                       crop.height, crop.width, height, width, exact::kMaxTaps));
}

}  // namespace

void check_crop(const TransformWork& work, std::size_t row) {
  const SampleCrop& crop = work.crops[row];
  const SampleSpec stored = stored_spec(work, row);
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
  if (work.exact) return check_placement(work, row);
  if (!resizes(work, crop)) return;
  if (delivered.height > kMaxResized || delivered.width > kMaxResized ||
      crop.height > kMaxShrink * delivered.height || crop.width > kMaxShrink * delivered.width)
    refuse(fmt::format(
        "{} x {} cannot be resized to {} x {}: at most {} rows and columns, shrunk at most {} times",
        crop.height, crop.width, delivered.height, delivered.width, kMaxResized, kMaxShrink));
}

}  // namespace shard
