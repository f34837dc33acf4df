#include <cstring>

#include "base/bytes.hpp"
#include "cuda/kernels/jpeg_index.hpp"

namespace shard::gpu {
namespace {

constexpr std::size_t kIndexAlignment = 16;

}  // namespace

JpegIndexPlan::JpegIndexPlan(std::span<const JpegIndexSource> sources) {
  groups_.push_back(0);
  for (const JpegIndexSource& source : sources) {
    const jpeg::LanePlan plan = jpeg::plan_lanes(source.mcus, source.file_bytes);
    images_.push_back({plan, slots_, chunks_, source.index});
    groups_.push_back(groups_.back() + plan.groups);
    slots_ += plan.slots();
    chunks_ += plan.chunks;
  }
}

std::size_t JpegIndexPlan::parameter_bytes() const noexcept {
  return round_up(images_.size() * sizeof(JpegLanes), kIndexAlignment) +
         round_up(groups_.size() * sizeof(std::uint32_t), kIndexAlignment);
}

std::size_t JpegIndexPlan::workspace_bytes() const noexcept {
  return slots_ * sizeof(jpeg::Lane) +
         std::size_t{chunks_} * (jpeg::kStartsOfChunk * sizeof(jpeg::McuStart) + sizeof(std::uint32_t)) +
         images_.size() * sizeof(std::uint32_t);
}

JpegIndexLaunch JpegIndexPlan::write(std::byte* host, const std::byte* device, std::byte* workspace) const {
  JpegIndexLaunch launch;
  const std::size_t groups = round_up(images_.size() * sizeof(JpegLanes), kIndexAlignment);
  std::memcpy(host, images_.data(), images_.size() * sizeof(JpegLanes));
  std::memcpy(host + groups, groups_.data(), groups_.size() * sizeof(std::uint32_t));
  launch.images = reinterpret_cast<const JpegLanes*>(device);
  launch.groups = {reinterpret_cast<const std::uint32_t*>(device + groups), groups_.back()};
  static_assert(sizeof(jpeg::Lane) % alignof(jpeg::McuStart) == 0);
  launch.lanes = reinterpret_cast<jpeg::Lane*>(workspace);
  workspace += slots_ * sizeof(jpeg::Lane);
  launch.starts = reinterpret_cast<jpeg::McuStart*>(workspace);
  workspace += std::size_t{chunks_} * jpeg::kStartsOfChunk * sizeof(jpeg::McuStart);
  launch.links = reinterpret_cast<std::uint32_t*>(workspace);
  launch.taken = launch.links + chunks_;
  return launch;
}

}  // namespace shard::gpu
