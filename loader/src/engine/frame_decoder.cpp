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
  const auto is_frame = [&](std::size_t row) { return frames.frames.files[row].bytes != 0; };
  decoded.clear();
  for (std::size_t first = 0; first < rows;) {
    if (!is_frame(first)) {
      for (const Event& event : after) stream.wait(event);
      decoded.push_back(frames.sources[first++]);
      continue;
    }
    std::size_t end = first + 1;
    while (end < rows && is_frame(end)) ++end;
    const std::size_t groups = decoders_.empty() ? 1 : (end - first + group_rows_ - 1) / group_rows_;
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t from = first + (end - first) * group / groups;
      const std::size_t to = first + (end - first) * (group + 1) / groups;
      target = queue_group(stream, after, free_spec(spec), frames, from, to - from, target, decoded);
    }
    first = end;
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
  work.unindexed = frames.frames.part(first, count).unindexed;
  work.sizes = frames.sizes.subspan(first, count);
  work.crops = crops_;
  work.target = target;
  work.broken = frames.broken + first;
  for (const SampleSize& size : work.sizes) {
    decoded.push_back(target);
    target += unpacked_room(spec.sized(size.height, size.width));
  }
  if (decoders_.empty()) {
    for (const Event& event : after) stream.wait(event);
    stream.transform(work);
    return target;
  }
  Decoder& decoder = decoders_[next_];
  next_ = (next_ + 1) % decoders_.size();
  for (const Event& event : after) decoder.stream->wait(event);
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
