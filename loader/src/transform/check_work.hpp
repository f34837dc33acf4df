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

// Whether the box has another size than the delivered sample.
inline bool resizes(const TransformWork& work, const SampleCrop& crop) noexcept {
  return crop.width != work.delivered.width || crop.height != work.delivered.height;
}

// Whether the samples are stored as floats, and each value is computed: cast to another type, or normalised.
inline bool converts_floats(const TransformWork& work) noexcept {
  return work.stored.dtype != DType::u8 && (work.stored.dtype != work.delivered.dtype || work.normalize);
}

}  // namespace shard
