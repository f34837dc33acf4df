// What both implementations of the transform hold a TransformWork against before they touch memory.
#pragma once

#include "shard/loader/transform.hpp"

namespace shard {

// The specs fit each other (channels, types), and there is a view for each source. Throws invalid_argument.
void check_work(const TransformWork& work);
// The box of row `row` lies inside the stored sample and can be resized to the delivered size. Throws
// invalid_argument.
void check_view(const TransformWork& work, std::size_t row);

// Whether the box has another size than the delivered sample.
inline bool resizes(const TransformWork& work, const SampleView& view) noexcept {
  return view.width != work.delivered.width || view.height != work.delivered.height;
}

}  // namespace shard
