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
#include "shard/jpeg_file.hpp"

namespace shard {

class Coder;

// What the head of a shard says of one frame: StoredImages::frame_spec().
struct FrameSpec {
  // Of the decoded sample, with its rows and columns.
  SampleSpec sample;
  // Codec jpeg only.
  jpeg::FrameFile file{};

  FrameSpec(const SampleSpec& of,
            const jpeg::FrameFile& with_file = {})  // NOLINT(google-explicit-constructor)
      : sample(of), file(with_file) {}
};

// Columns [left, left + width) and rows [top, top + height) of a sample. Not empty.
struct SampleBox {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const SampleBox&) const = default;
};

// A codec for samples of one SampleSpec, which may be free. Immutable and cheap to copy.
// Several threads may call const members at once.
//
// Codec packed stores bytes. Float samples are stored as the bytes from which (byte / 255 - mean) / std was
// computed, and restored exactly through a table. Codec jpeg is lossy: what a shard stores is the decoded
// frame.
class Codec {
 public:
  // Throws invalid_argument if a spec is not valid.
  Codec(const CodecSpec& codec_spec, const SampleSpec& spec, const Normalization& normalization = {});

  // `of`, below: what the sample is, which is the spec, or if that is free spec.sized(rows, columns). Without
  // it: the spec, which must not be free.
  //
  // The frame that a shard stores for `sample` (of.sample.size_bytes() bytes). Sets of.file, which decode()
  // needs. Errors: resource; invalid_argument (another size; codec packed and a value that is not a
  // normalised byte value; codec jpeg and a side beyond 65,500).
  std::vector<std::byte> encode(std::span<const std::byte> sample, FrameSpec& of) const;
  std::vector<std::byte> encode(std::span<const std::byte> sample, const SampleSpec& of) const {
    FrameSpec frame(of);
    return encode(sample, frame);
  }
  std::vector<std::byte> encode(std::span<const std::byte> sample) const { return encode(sample, spec_); }

  // Fills `sample` (of.sample.size_bytes() bytes) from a frame that holds exactly one sample. Reads nothing
  // outside of `frame`. With codec packed, `frame` may change meanwhile; the result is then some sample or
  // corrupt. Errors: corrupt (with the reason), invalid_argument (another size).
  void decode(std::span<const std::byte> frame, std::span<std::byte> sample, const FrameSpec& of) const;
  void decode(std::span<const std::byte> frame, std::span<std::byte> sample) const {
    decode(frame, sample, spec_);
  }
  // The same, but only the box is needed, which must be inside the sample. Codec jpeg leaves the rest of
  // `sample` as it is, and does not find all damage outside of the box. `frame` must not change meanwhile.
  void decode_part(std::span<const std::byte> frame, std::span<std::byte> sample, const FrameSpec& of,
                   const SampleBox& box) const;
  // decode(encode(sample)) may differ from the sample.
  bool lossy() const noexcept { return lossy_; }

  // The smallest and the largest possible size of a frame; codec jpeg: of that of a file, without one the
  // largest of any.
  std::uint64_t least_frame_bytes(const FrameSpec& of) const noexcept;
  std::uint64_t least_frame_bytes() const noexcept { return least_frame_bytes(spec_); }
  std::uint64_t most_frame_bytes(const FrameSpec& of) const noexcept;
  // The size of each frame is a multiple of this.
  std::uint64_t frame_alignment() const noexcept { return frame_alignment_; }
  // Codec jpeg: whether of.file is one of a sample like this; whether a frame holds it, as far as that can be
  // told without decoding. Error: corrupt, with the value and its bounds.
  void check_file(const FrameSpec& of) const;
  void check_frame(std::span<const std::byte> frame, const FrameSpec& of) const;
  // What decode() does not find in a frame that it takes. Codec jpeg: an index that is not the file's. Error:
  // corrupt.
  void verify(std::span<const std::byte> frame, const FrameSpec& of) const;

 private:
  void check_sample(std::size_t size, const SampleSpec& of) const;

  SampleSpec spec_;
  std::uint64_t frame_alignment_ = 1;
  bool lossy_ = false;
  std::shared_ptr<const Coder> coder_;
};

}  // namespace shard
