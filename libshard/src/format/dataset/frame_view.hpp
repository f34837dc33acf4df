// Images that are not converted, as frames of codec jpeg: what a device takes that decodes them.
#pragma once

#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard {

// The same samples. JPEG files that a frame can hold as they are become frames, all others pixels. `data`
// itself if some of its samples are stored, or not as large as their images.
class FrameView {
 public:
  static Dataset of(const Dataset& data);
};

}  // namespace shard
