// What a codec returns: the pixels as the file stores them, and how they must be turned.
#pragma once

#include "image/pixel_buffer.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

struct StoredImage {
  RgbView pixels;  // lies in the buffer given to the codec
  int orientation = 1;
  MemoryBudget::Share share;  // of DecodeOptions::memory: for the pixels, and to turn them upright
  WarningSet warnings;        // that were accepted
};

}  // namespace shard::image
