#include "engine/frame_decoder.hpp"

#include <algorithm>

#include "transform/check_work.hpp"

namespace shard {

namespace {

// Samples that are only decoded have sizes of their own, also those of one size.
SampleSpec free_spec(SampleSpec spec) {
  spec.height = spec.width = 0;
  return spec;
}

SampleCrop crop_of(const SampleBox& box) {
  return {box.left, box.top, box.width, box.height, false, box.height, box.width, 0, 0};
}

}  // namespace

FrameDecoder::FrameDecoder(Device& device, const DecoderMemory& memory) : group_rows_(memory.group_rows) {
  for (std::uint64_t i = 0; i < memory.decoders; ++i)
    decoders_.push_back({device.allocate_device(memory.workspace_bytes),
                         memory.index_bytes != 0 ? device.allocate_device(memory.index_bytes) : nullptr,
                         device.create_stream(),
                         {}});
}

std::size_t FrameDecoder::fit(const SampleSpec& spec, std::span<const SampleSize> sizes, std::size_t step,
                              std::uint64_t room_bytes) {
  const SampleSpec of = free_spec(spec);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < sizes.size(); i += step) {
    const std::size_t end = std::min(i + step, sizes.size());
    for (std::size_t j = i; j < end; ++j) used += unpacked_room(of.sized(sizes[j].height, sizes[j].width));
    if (i > 0 && used > room_bytes) return i;
  }
  return sizes.size();
}

void FrameDecoder::queue(Stream& stream, std::span<const Event> after, const SampleSpec& spec,
                         const Frames& frames, std::byte* target, std::vector<const std::byte*>& decoded) {
  const std::size_t rows = frames.sources.size();
  decoded.clear();
  const bool all_frames = std::all_of(frames.frames.files.begin(), frames.frames.files.end(),
                                      [](const jpeg::FrameFile& file) { return file.bytes != 0; });
  if (!all_frames)
    for (const Event& event : after) stream.wait(event);
  const std::size_t groups = decoders_.empty() ? 1 : (rows + group_rows_ - 1) / group_rows_;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t from = rows * group / groups;
    const std::size_t to = rows * (group + 1) / groups;
    target = queue_group(stream, after, free_spec(spec), frames, from, to - from, target, decoded);
  }
}

std::byte* FrameDecoder::queue_group(Stream& stream, std::span<const Event> after, const SampleSpec& spec,
                                     const Frames& frames, std::size_t first, std::size_t count,
                                     std::byte* target, std::vector<const std::byte*>& decoded) {
  TransformWork work;
  work.stored = work.delivered = spec;
  work.exact = true;
  work.target_is_read_soon = true;
  crops_.clear();
  for (const SampleBox& box : frames.boxes.subspan(first, count)) crops_.push_back(crop_of(box));
  work.sources = frames.sources.subspan(first, count);
  work.frame_bytes = frames.frames.sizes.subspan(first, count);
  work.files = frames.frames.files.subspan(first, count);
  work.sizes = frames.sizes.subspan(first, count);
  work.crops = crops_;
  work.target = target;
  work.broken = frames.broken + first;
  std::byte* const begin = target;
  for (std::size_t row = 0; row < count; ++row) {
    decoded.push_back(work.files[row].bytes != 0 ? target : work.sources[row]);
    target += decoded_room(work, row);
  }
  if (target == begin) return target;  // no frame is among them
  Decoder* decoder = nullptr;
  if (!decoders_.empty()) {
    decoder = &decoders_[next_];
    next_ = (next_ + 1) % decoders_.size();
    work.workspace = decoder->workspace->data();
    work.workspace_bytes = decoder->workspace->size_bytes();
  }
  Stream& by = decoder != nullptr ? *decoder->stream : stream;
  for (const Event& event : after) by.wait(event);
  try {
    queue_indices(by, decoder, frames, first, count);
    by.transform(work);
  } catch (...) {  // some of it may be queued: it writes to the frames and to the target
    if (decoder != nullptr) stream.wait(by.record());
    throw;
  }
  if (decoder != nullptr) stream.wait(by.record());
  return target;
}

void FrameDecoder::queue_indices(Stream& by, Decoder* decoder, const Frames& frames, std::size_t first,
                                 std::size_t count) {
  const std::span<const std::uint8_t> unindexed = frames.frames.unindexed;
  unindexed_.clear();
  bool has_others = false;  // of frames that stay on the device it was made for another batch
  for (std::size_t row = first; row < first + count; ++row) {
    if (!unindexed.empty() && unindexed[row] != 0)
      unindexed_.push_back({frames.frames.files[row], const_cast<std::byte*>(frames.sources[row])});
    else
      has_others = true;
  }
  if (!unindexed_.empty()) {
    JpegIndexWork work;
    work.frames = unindexed_;
    if (decoder != nullptr && decoder->index_workspace) {
      work.workspace = decoder->index_workspace->data();
      work.workspace_bytes = decoder->index_workspace->size_bytes();
    }
    by.index_jpeg(work);
    if (decoder != nullptr) decoder->indexed = by.record();
  }
  if (!has_others) return;
  for (const Decoder& other : decoders_) by.wait(other.indexed);
}

}  // namespace shard
