// The part of a stored sample that a transform reads, so that no more of a frame is decoded.
#pragma once

#include "shard/codec.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

// What row `row` of the work, which check_crop() accepts, reads of its sample, or little more: the crop's
// box; if the view shows a part of what that is resized to, what this part sees.
SampleBox needed_box(const TransformWork& work, std::size_t row);
// The smallest box with both.
SampleBox united(const SampleBox& a, const SampleBox& b) noexcept;

}  // namespace shard
