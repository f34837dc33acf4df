// One sample to one stored frame and back, outside of a shard.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shard/sample_spec.hpp"

namespace shard {

// The frame that a shard would store for `sample`. Thread safe. Errors: resource.
std::vector<std::byte> encode_frame(const Codec& codec, std::span<const std::byte> sample);

// Fills `sample` from a frame that must hold exactly sample.size() bytes. Thread safe. Errors: corrupt,
// saying why.
void decode_frame(const Codec& codec, std::span<const std::byte> frame, std::span<std::byte> sample);

}  // namespace shard
