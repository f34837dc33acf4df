// A work with programs (TransformWork::begins), on the calling thread: each sample is made into u8 pixels,
// its program executed, and the pixels made into the delivered sample.
#pragma once

#include <cstddef>

#include "shard/loader/transform.hpp"

namespace shard::augment {

// What programs work on: `delivered` as u8 [row, column, channel].
SampleSpec pixels_of(const SampleSpec& delivered) noexcept;

// True if programs see each sample at its own size, which is that of its resized box.
inline bool own_sizes(const TransformWork& work) noexcept { return work.padded || work.patch != 0; }
// The crop that makes these pixels: they begin at row 0 and column 0.
SampleCrop own_crop(SampleCrop crop) noexcept;
// From there to the view, where they are padded or cut into patches: nothing is resized.
SampleCrop whole_crop(const SampleSize& size) noexcept;
// The two passes around the programs, samples -> pixels -> delivered samples, without what belongs to
// single samples.
struct Passes {
  TransformWork to_pixels;
  TransformWork to_sample;
  explicit Passes(const TransformWork& work);
};

// Throws invalid_argument if the programs of a work do not fit its samples, or are none.
void check_programs(const TransformWork& work);

// Rows [first, last) of a work that check_work() and check_programs() accept.
void augment_rows(const TransformWork& work, std::size_t first, std::size_t last);

}  // namespace shard::augment
