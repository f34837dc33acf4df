// Codec: encodes one sample into one stored frame and decodes it again, outside of a shard. Which one is
// described by a CodecSpec (dataset_spec.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"

namespace shard {

class Coder;

// A codec for samples of one SampleSpec, which may be free. Immutable and cheap to copy.
// Several threads may call const members at once.
//
// Codec packed stores bytes. Float samples are stored as the bytes from which (byte / 255 - mean) / std was
// computed, and restored exactly through a table.
class Codec {
 public:
  // Throws invalid_argument if a spec is not valid.
  Codec(const CodecSpec& codec_spec, const SampleSpec& spec, const Normalization& normalization = {});

  // `of`, below: what the sample is, which is the spec, or if that is free spec.sized(rows, columns). Without
  // it: the spec, which must not be free.
  //
  // The frame that a shard stores for `sample` (of.size_bytes() bytes). Errors: resource; invalid_argument
  // (another size, or codec packed and a value that is not a normalised byte value).
  std::vector<std::byte> encode(std::span<const std::byte> sample, const SampleSpec& of) const;
  std::vector<std::byte> encode(std::span<const std::byte> sample) const { return encode(sample, spec_); }

  // Fills `sample` (of.size_bytes() bytes) from a frame that holds exactly one sample. Reads nothing
  // outside of `frame`. With codec packed, `frame` may change meanwhile; the result is then some sample or
  // corrupt. Errors: corrupt (with the reason), invalid_argument (another size).
  void decode(std::span<const std::byte> frame, std::span<std::byte> sample, const SampleSpec& of) const;
  void decode(std::span<const std::byte> frame, std::span<std::byte> sample) const {
    decode(frame, sample, spec_);
  }

  // The smallest possible size of a frame.
  std::uint64_t least_frame_bytes(const SampleSpec& of) const noexcept;
  std::uint64_t least_frame_bytes() const noexcept { return least_frame_bytes(spec_); }
  // The size of each frame is a multiple of this.
  std::uint64_t frame_alignment() const noexcept { return frame_alignment_; }

 private:
  void check_sample(std::size_t size, const SampleSpec& of) const;

  SampleSpec spec_;
  std::uint64_t frame_alignment_ = 1;
  std::shared_ptr<const Coder> coder_;
};

}  // namespace shard
