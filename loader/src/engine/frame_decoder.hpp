// FrameDecoder: queues the decoding of frames of codec jpeg on a device that has memory of its own, in groups
// that several streams work on at once. One group alone waits for its longest stream of codes.
//
//   copies       batch | next batch
//                      |
//   indexer 0      wait | files without an index --.     those of the next batches by indexers 1, 2, ...
//   decoder 0                                  wait | group 0 --.   groups of other batches follow
//   decoder 1                                  wait | group 1 --|-.
//                                                               | |
//   stream         ...                                      wait' ' transforms of all views
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
  // Makes the indices that are missing, and sets ready_ to when all are there.
  void queue_indices(Stream& stream, std::span<const Event> after, const Frames& frames);
  // Rows [first, first + count), after ready_. Returns what is behind their samples.
  std::byte* queue_group(Stream& stream, const SampleSpec& spec, const Frames& frames, std::size_t first,
                         std::size_t count, std::byte* target, std::vector<const std::byte*>& decoded);
  // Work in the stream uses the workspace.
  struct Decoder {
    std::unique_ptr<Block> workspace;
    std::unique_ptr<Stream> stream;  // destroyed first
  };

  std::uint64_t group_rows_;
  std::vector<Decoder> decoders_;  // groups take turns
  std::size_t next_ = 0;
  std::vector<Decoder> indexers_;  // batches take turns
  std::vector<Event> indexed_;     // their last work
  std::size_t next_indexer_ = 0;
  std::vector<SampleCrop> crops_;  // scratch, like those that follow
  std::vector<Event> ready_;
  std::vector<JpegIndexWork::Frame> unindexed_;
};

}  // namespace shard
