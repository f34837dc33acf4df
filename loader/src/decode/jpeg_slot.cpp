#include "decode/jpeg_slot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

constexpr std::uint64_t kAlignment = 16;
constexpr std::uint64_t kChannels = 3;

std::uint64_t pixel_room(const Input& input) {
  return round_up(std::uint64_t{input.width} * input.height * kChannels, kAlignment);
}

// Images of one size that follow each other in the batch.
bool follows(const Call& call, std::size_t before, std::size_t after) {
  const JpegBatch::Image& one = call.images[before];
  const JpegBatch::Image& other = call.images[after];
  return one.height == other.height && one.width == other.width &&
         one.offset + call.delivered(before).size_bytes() == other.offset;
}

}  // namespace

SampleSpec Call::delivered(std::size_t input) const {
  return spec.is_free() ? spec.sized(images[input].height, images[input].width) : spec;
}

bool Call::is_plain(std::size_t input) const {
  const Input& one = inputs[input];
  return spec.is_free() && spec.dtype == DType::u8 && spec.layout == shard::Layout::nhwc &&
         one.box.width == one.width && one.box.height == one.height;
}

std::byte* Slot::device_room(std::unique_ptr<Block>& block, std::uint64_t size) {
  if (!block || block->size_bytes() < size) {
    block.reset();
    block = device_.allocate_device(size + size / 8);
  }
  return block->data();
}

std::byte* Slot::pinned_room(std::unique_ptr<Block>& block, std::uint64_t size) {
  if (!block || block->size_bytes() < size) {
    block.reset();
    block = device_.allocate_pinned(size + size / 8);
  }
  return block->data();
}

std::uint64_t Slot::bytes_by_kernels(const Call& call, std::size_t input) const {
  Input& one = call.inputs[input];
  one.workspace_bytes = stream_->jpeg_workspace_bytes(one.frame);
  return one.workspace_bytes + 2 * one.file.size() + (call.is_plain(input) ? 0 : pixel_room(one));
}

std::uint64_t Slot::bytes_by_host(const Input& input) { return 2 * pixel_room(input); }

void Slot::place_pixels(const Call& call, std::span<const std::size_t> group) {
  std::uint64_t size = 0;
  for (const std::size_t i : group) size += call.is_plain(i) ? 0 : pixel_room(call.inputs[i]);
  std::byte* at = size == 0 ? nullptr : device_room(pixels_, size);
  places_.clear();
  for (const std::size_t i : group) {
    const bool plain = call.is_plain(i);
    places_.push_back(plain ? call.target + call.images[i].offset : at);
    if (!plain) at += pixel_room(call.inputs[i]);
  }
}

void Slot::by_kernels(const Call& call, std::span<const std::size_t> group, const RunOnThreads& run) {
  offsets_.clear();
  unpinned_.clear();
  std::uint64_t file_bytes = 0;
  std::uint64_t workspace_bytes = 0;
  for (std::size_t k = 0; k < group.size(); ++k) {
    const Input& input = call.inputs[group[k]];
    offsets_.push_back(file_bytes);
    if (!input.pinned) unpinned_.push_back(k);
    file_bytes += round_up(input.file.size(), kAlignment);
    workspace_bytes += input.workspace_bytes;
  }
  std::byte* const staging = unpinned_.empty() ? nullptr : pinned_room(staging_, file_bytes);
  std::byte* const files = device_room(files_, file_bytes);
  JpegWork work;
  work.workspace = device_room(workspace_, workspace_bytes);
  work.workspace_bytes = workspace_bytes;
  work.faults = reinterpret_cast<std::uint32_t*>(pinned_room(faults_, group.size() * sizeof(std::uint32_t)));
  place_pixels(call, group);
  run(unpinned_.size(), [&](std::size_t i, HostJpeg&) {
    const std::size_t k = unpinned_[i];
    const Input& input = call.inputs[group[k]];
    std::memcpy(staging + offsets_[k], input.file.data(), input.file.size());
  });
  items_.clear();
  images_.clear();
  for (std::size_t k = 0; k < group.size(); ++k) {
    const Input& input = call.inputs[group[k]];
    std::byte* const file = files + offsets_[k];
    items_.push_back({file, input.pinned ? input.file.data() : staging + offsets_[k], input.file.size()});
    images_.push_back({input.frame, input.box, file, places_[k]});
  }
  stream_->wait(call.ready);
  stream_->copy(items_);
  work.images = images_;
  stream_->decode_jpeg(work);
  transform(call, group);
  group_.assign(group.begin(), group.end());
  done_ = stream_->record();
}

void Slot::by_host(const Call& call, std::span<const std::size_t> group, const RunOnThreads& run) {
  offsets_.clear();
  std::uint64_t size = 0;
  for (const std::size_t i : group) {
    offsets_.push_back(size);
    size += pixel_room(call.inputs[i]);
  }
  std::byte* const staging = pinned_room(staging_, size);
  place_pixels(call, group);
  run(group.size(), [&](std::size_t k, HostJpeg& host) {
    Input& input = call.inputs[group[k]];
    std::byte* out = staging + offsets_[k];
    try {
      if (!input.failure) {
        const image::RgbView view = host.decode(input.file, call.options->upright);
        if (view.width != input.width || view.height != input.height)
          throw Error(ErrorCode::corrupt, fmt::format("{} x {} pixels instead of {} x {}", view.width,
                                                      view.height, input.width, input.height));
        for (std::uint32_t row = 0; row < view.height; ++row, out += std::size_t{view.width} * kChannels)
          std::memcpy(out, view.data + row * view.stride_bytes, std::size_t{view.width} * kChannels);
        return;
      }
    } catch (const Error& error) {
      input.failure = failure_of(group[k], error);
    }
    std::memset(staging + offsets_[k], 0, pixel_room(input));
  });
  items_.clear();
  for (std::size_t k = 0; k < group.size(); ++k) {
    const Input& input = call.inputs[group[k]];
    items_.push_back(
        {places_[k], staging + offsets_[k], std::uint64_t{input.width} * input.height * kChannels});
  }
  stream_->wait(call.ready);
  stream_->copy_pinned(items_);
  transform(call, group);
  group_.clear();
  done_ = stream_->record();
}

void Slot::transform(const Call& call, std::span<const std::size_t> group) {
  for (std::size_t first = 0; first < group.size();) {
    std::size_t last = first + 1;
    if (call.is_plain(group[first])) {
      first = last;
      continue;
    }
    while (last < group.size() && !call.is_plain(group[last]) && follows(call, group[last - 1], group[last]))
      ++last;
    sources_.assign(places_.begin() + static_cast<std::ptrdiff_t>(first),
                    places_.begin() + static_cast<std::ptrdiff_t>(last));
    transform_run(call, group.subspan(first, last - first), sources_.data());
    first = last;
  }
}

void Slot::transform_run(const Call& call, std::span<const std::size_t> run,
                         const std::byte* const* sources) {
  crops_.clear();
  sizes_.clear();
  for (const std::size_t i : run) {
    const Input& input = call.inputs[i];
    SampleCrop& crop = crops_.emplace_back();
    crop.left = input.box.left;
    crop.top = input.box.top;
    crop.width = input.box.width;
    crop.height = input.box.height;
    sizes_.push_back({input.height, input.width});
  }
  TransformWork work;
  work.stored.dtype = DType::u8;
  work.stored.layout = shard::Layout::nhwc;
  work.stored.channels = kChannels;
  work.stored.height = work.stored.width = 0;
  work.delivered = call.delivered(run.front());
  if (call.options->normalization) {
    work.normalization = *call.options->normalization;
    work.normalize = true;
  }
  work.sources = {sources, run.size()};
  work.crops = crops_;
  work.sizes = sizes_;
  work.exact = true;
  work.filter = call.options->filter;
  work.target = call.target + call.images[run.front()].offset;
  work.target_is_read_soon = true;
  stream_->transform(work);
}

void Slot::finish(std::vector<std::size_t>& refused) {
  std::exchange(done_, Event()).wait();
  if (group_.empty()) return;
  const auto* faults = reinterpret_cast<const std::uint32_t*>(faults_->data());
  for (std::size_t k = 0; k < group_.size(); ++k)
    if (faults[k] != 0) refused.push_back(group_[k]);
  group_.clear();
}

}  // namespace shard::jpeg
