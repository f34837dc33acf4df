// The checks of a TransformWork that both implementations of the transform make before they read or write
// memory.
#pragma once

#include "shard/loader/transform.hpp"

namespace shard {

// Checks that the specs fit each other (channels, types), and that each source has a crop. Throws
// invalid_argument.
void check_work(const TransformWork& work);
// Checks that the box of row `row` is inside the stored sample and can be resized to the delivered size.
// Throws invalid_argument.
void check_crop(const TransformWork& work, std::size_t row);

// Rows and columns of the stored sample of a row.
inline SampleSize stored_size(const TransformWork& work, std::size_t row) noexcept {
  return work.sizes.empty() ? SampleSize{work.stored.height, work.stored.width} : work.sizes[row];
}
// The spec of the stored sample of a row.
inline SampleSpec stored_spec(const TransformWork& work, std::size_t row) noexcept {
  return work.sizes.empty() ? work.stored : work.stored.sized(work.sizes[row].height, work.sizes[row].width);
}
// What the box is resized to.
inline std::uint32_t resized_height(const TransformWork& work, const SampleCrop& crop) noexcept {
  return crop.resized_height != 0 ? crop.resized_height : work.delivered.height;
}
inline std::uint32_t resized_width(const TransformWork& work, const SampleCrop& crop) noexcept {
  return crop.resized_width != 0 ? crop.resized_width : work.delivered.width;
}
// What an unpacked sample takes of TransformWork::unpacked, if samples have sizes of their own.
inline std::uint64_t unpacked_room(const SampleSpec& sized) noexcept {
  constexpr std::uint64_t kAlign = TransformWork::kUnpackedAlign;
  return (sized.elements() + kAlign - 1) / kAlign * kAlign;
}

// TransformWork::only_decodes(): what row `row` takes of the target.
inline std::uint64_t decoded_room(const TransformWork& work, std::size_t row) noexcept {
  if (!work.files.empty() && work.files[row].bytes == 0) return 0;
  return unpacked_room(stored_spec(work, row));
}

// Whether the box has another size than the delivered sample.
inline bool resizes(const TransformWork& work, const SampleCrop& crop) noexcept {
  return crop.width != work.delivered.width || crop.height != work.delivered.height;
}

// Samples that only version 2 of the profile has. They are computed in float32, also if they are u8 or u16.
// Exact works of floats are computed likewise.
inline bool is_wide(const SampleSpec& stored) noexcept {
  return stored.dtype == DType::u16 || stored.channels > 4 || stored.is_tensor();
}

// Whether each value is computed: cast to another type, or normalised.
inline bool converts_values(const TransformWork& work) noexcept {
  return work.stored.dtype != work.delivered.dtype || work.normalize;
}
// The same for samples stored as floats, or computed as such.
inline bool converts_floats(const TransformWork& work) noexcept {
  return (work.stored.dtype != DType::u8 || is_wide(work.stored)) && converts_values(work);
}

inline bool is_float(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32;
}

// What values are divided by before they are normalised: 255 and 65535 where u8 and u16
// become floats, else 1.
inline float scale_of(const TransformWork& work) noexcept {
  return is_float(work.delivered.dtype) ? full_scale(work.stored.dtype) : 1.0F;
}

}  // namespace shard
