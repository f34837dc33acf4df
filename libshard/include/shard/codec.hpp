// One sample to one stored frame and back, outside of a shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shard/sample_spec.hpp"

namespace shard {

// A codec for samples of one kind. Immutable, cheap to copy; const members may be called from several threads
// at once.
//
// Codec packed stores bytes: of samples of floats those that (byte / 255 - mean) / std was computed from, a
// table gives the values back bit for bit.
class SampleCodec {
 public:
  // Throws invalid_argument when the spec or the codec is not possible.
  SampleCodec(const Codec& codec, const SampleSpec& spec, const Normalization& normalization = {});

  // The frame that a shard stores for `sample` (spec.size_bytes() bytes). Errors: resource; invalid_argument:
  // another size, or codec packed and a value that no byte gives.
  std::vector<std::byte> encode(std::span<const std::byte> sample) const;

  // Fills `sample` (spec.size_bytes() bytes) from a frame that holds exactly one; reads nothing outside
  // `frame`; with codec packed it may change meanwhile, which gives some sample or corrupt. Errors: corrupt,
  // saying why; invalid_argument: another size.
  void decode(std::span<const std::byte> frame, std::span<std::byte> sample) const;

  // The least that a frame can take.
  std::uint64_t least_frame_bytes() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace shard
