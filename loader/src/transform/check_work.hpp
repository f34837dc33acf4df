// What both implementations of the transform hold a TransformWork against before they touch memory.
#pragma once

#include "shard/loader/transform.hpp"

namespace shard {

// The specs fit each other (channels, types), and there is a crop for each source. Throws invalid_argument.
void check_work(const TransformWork& work);
// The box of row `row` lies inside the stored sample and can be resized to the delivered size. Throws
// invalid_argument.
void check_crop(const TransformWork& work, std::size_t row);

// Whether the box has another size than the delivered sample.
inline bool resizes(const TransformWork& work, const SampleCrop& crop) noexcept {
  return crop.width != work.delivered.width || crop.height != work.delivered.height;
}

// Stored floats of which every value is computed: cast to another type, or normalised.
inline bool converts_floats(const TransformWork& work) noexcept {
  return work.stored.dtype != DType::u8 && (work.stored.dtype != work.delivered.dtype || work.normalize);
}

}  // namespace shard
