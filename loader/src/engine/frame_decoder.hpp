// FrameDecoder: queues the decoding of frames of codec jpeg on a device that has memory of its own, in groups
// that several streams work on at once. One group alone waits for its longest stream of codes.
//
//   copies       batch | next batch
//                      |
//   decoder 0      wait' group 0: indices of files without one, then pixels --.   groups of other batches
//   decoder 1      wait' group 1: ------------------------------------------- |-.   follow
//                                                                             | |
//   stream         ...                                                    wait' ' transforms of all views
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/stored_form.hpp"
#include "shard/loader/device.hpp"
#include "transform/jpeg_work.hpp"
#include "transform/needed_box.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

// The feeder's thread only.
class FrameDecoder {
 public:
  // Allocates `memory`. With none, streams decode by themselves. Errors: resource.
  FrameDecoder(Device& device, const DecoderMemory& memory);
  FrameDecoder(const FrameDecoder&) = delete;
  FrameDecoder& operator=(const FrameDecoder&) = delete;

  // Frames, and what of each sample is decoded; the rest of it is undefined. Where a file has no bytes, the
  // source is the sample itself.
  struct Frames {
    std::span<const std::byte* const> sources;
    StoredFrames frames;
    std::span<const SampleSize> sizes;
    std::span<const SampleBox> boxes;
    std::uint32_t* broken = nullptr;
  };
  // Queues the decoding of all frames to `target`, where samples lie as TransformWork::unpacked has them,
  // after these events; later work in `stream` finds them there. Sets `decoded` to where each one is. `spec`:
  // StoredForm::transform_input().
  void queue(Stream& stream, std::span<const Event> after, const SampleSpec& spec, const Frames& frames,
             std::byte* target, std::vector<const std::byte*>& decoded);
  // How many frames from the first on have room, `step` at a time; at least `step`.
  static std::size_t fit(const SampleSpec& spec, std::span<const SampleSize> sizes, std::size_t step,
                         std::uint64_t room_bytes);

 private:
  // Work in the stream uses the memory.
  struct Decoder {
    std::unique_ptr<Block> workspace;
    std::unique_ptr<Block> index_workspace;  // may be null
    std::unique_ptr<Stream> stream;          // destroyed first
    Event indexed;                           // its last indices are there
  };

  // Rows [first, first + count), after `after`. Returns what is behind their samples.
  std::byte* queue_group(Stream& stream, std::span<const Event> after, const SampleSpec& spec,
                         const Frames& frames, std::size_t first, std::size_t count, std::byte* target,
                         std::vector<const std::byte*>& decoded);
  // Makes the indices of these rows that are missing. `decoder`: whose stream `by` is, or null. Later work in
  // `by` finds those, too, that were made for other batches.
  void queue_indices(Stream& by, Decoder* decoder, const Frames& frames, std::size_t first,
                     std::size_t count);

  std::uint64_t group_rows_;
  std::vector<Decoder> decoders_;  // groups take turns
  std::size_t next_ = 0;
  std::vector<SampleCrop> crops_;  // scratch, like the next
  std::vector<JpegIndexWork::Frame> unindexed_;
};

}  // namespace shard
