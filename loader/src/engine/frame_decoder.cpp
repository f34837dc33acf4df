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
    decoders_.push_back({device.allocate_device(memory.workspace_bytes), device.create_stream()});
  for (std::uint64_t i = 0; i < memory.indexers; ++i)
    indexers_.push_back({device.allocate_device(memory.index_bytes), device.create_stream()});
  indexed_.resize(indexers_.size());
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
  queue_indices(stream, after, frames);
  const bool all_frames = std::all_of(frames.frames.files.begin(), frames.frames.files.end(),
                                      [](const jpeg::FrameFile& file) { return file.bytes != 0; });
  if (!all_frames)
    for (const Event& event : after) stream.wait(event);
  const std::size_t groups = decoders_.empty() ? 1 : (rows + group_rows_ - 1) / group_rows_;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t from = rows * group / groups;
    const std::size_t to = rows * (group + 1) / groups;
    target = queue_group(stream, free_spec(spec), frames, from, to - from, target, decoded);
  }
}

void FrameDecoder::queue_indices(Stream& stream, std::span<const Event> after, const Frames& frames) {
  ready_.assign(after.begin(), after.end());
  // Of frames that stay on the device it was made for another batch.
  ready_.insert(ready_.end(), indexed_.begin(), indexed_.end());
  unindexed_.clear();
  const std::span<const std::uint8_t> unindexed = frames.frames.unindexed;
  for (std::size_t row = 0; row < unindexed.size(); ++row)
    if (unindexed[row] != 0)
      unindexed_.push_back({frames.frames.files[row], const_cast<std::byte*>(frames.sources[row])});
  if (unindexed_.empty()) return;
  const std::size_t number = next_indexer_;
  if (!indexers_.empty()) next_indexer_ = (next_indexer_ + 1) % indexers_.size();
  Stream& by = indexers_.empty() ? stream : *indexers_[number].stream;
  JpegIndexWork work;
  work.frames = unindexed_;
  if (!indexers_.empty()) {
    work.workspace = indexers_[number].workspace->data();
    work.workspace_bytes = indexers_[number].workspace->size_bytes();
  }
  for (const Event& event : after) by.wait(event);
  try {
    by.index_jpeg(work);
  } catch (...) {  // some of it may be queued: it writes to the frames
    stream.wait(by.record());
    throw;
  }
  const Event made = by.record();
  if (!indexers_.empty()) indexed_[number] = made;
  if (unindexed_.size() == frames.sources.size()) ready_.clear();  // all of it is part of `made`
  ready_.push_back(made);
}

std::byte* FrameDecoder::queue_group(Stream& stream, const SampleSpec& spec, const Frames& frames,
                                     std::size_t first, std::size_t count, std::byte* target,
                                     std::vector<const std::byte*>& decoded) {
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
  if (decoders_.empty()) {
    for (const Event& event : ready_) stream.wait(event);
    stream.transform(work);
    return target;
  }
  Decoder& decoder = decoders_[next_];
  next_ = (next_ + 1) % decoders_.size();
  for (const Event& event : ready_) decoder.stream->wait(event);
  work.workspace = decoder.workspace->data();
  work.workspace_bytes = decoder.workspace->size_bytes();
  try {
    decoder.stream->transform(work);
  } catch (...) {  // some of it may be queued: it writes to the target
    stream.wait(decoder.stream->record());
    throw;
  }
  stream.wait(decoder.stream->record());
  return target;
}

}  // namespace shard
