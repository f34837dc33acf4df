// How a file without an index is divided between the lanes that make one (lane_decoder.hpp):
//
//   the scan     |part 0  |part 1  |part 2  | ...              one lane each, of up to 1024 bytes
//   groups       [lanes 0 to 63]            the last four lanes of a group are also the first ones of the
//                        [lanes 60 to 123]  next, so that each lane finds those behind it in a group
//
// All sizes follow from what is known before the file is read.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/lanes/mcu_start.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

// Less than this: positions are bits, in 32 bits.
inline constexpr std::uint32_t kMostIndexedBytes = 1U << 29;
inline constexpr std::uint32_t kLanesOfGroup = 64;
// Behind its own part a lane walks on until it meets another: at least through the lanes that are in two
// groups, where its own group ends. Where it meets none, the MCUs up to the next start are read by one thread
// alone: of the 442,870 MCUs of 238 photographs, in parts of 1024 bytes, 952 if lanes walk through one part,
// 154 through two, 6 through four, and 1 through as many as the group has, up to twelve.
inline constexpr std::uint32_t kLanesInTwoGroups = 4;
inline constexpr std::uint32_t kStepOfGroup = kLanesOfGroup - kLanesInTwoGroups;
inline constexpr std::uint32_t kMostBytesBehind = 12 * 1024;
inline constexpr std::uint32_t kMostBytesOfPart = 1024;
inline constexpr std::uint32_t kLeastBytesOfPart = 512;

struct LanePlan {
  std::uint32_t part_bytes = 0;
  std::uint32_t lanes = 0;   // at least 1
  std::uint32_t groups = 0;  // at least 1
  std::uint32_t chunks = 0;  // of the pool

  // Through so many a lane walks at most, as far as its group goes.
  SHARD_EXACT constexpr std::uint32_t parts_behind() const noexcept {
    return part_bytes == 0 ? 0 : kMostBytesBehind / part_bytes;
  }
  SHARD_EXACT constexpr std::uint32_t slots() const noexcept { return groups * kLanesOfGroup; }
  SHARD_EXACT static constexpr std::uint32_t first_lane(std::uint32_t group) noexcept {
    return group * kStepOfGroup;
  }
  SHARD_EXACT constexpr std::uint32_t lanes_of(std::uint32_t group) const noexcept {
    const std::uint32_t left = lanes - first_lane(group);
    return left < kLanesOfGroup ? left : kLanesOfGroup;
  }
  // Where a lane's results are: those of the group where it has more lanes behind it.
  SHARD_EXACT constexpr std::uint32_t slot_of(std::uint32_t lane) const noexcept {
    const std::uint32_t group = lane / kStepOfGroup < groups ? lane / kStepOfGroup : groups - 1;
    return group * kLanesOfGroup + lane - first_lane(group);
  }
};

// `part`: its bytes.
SHARD_EXACT constexpr LanePlan plan_lanes(std::uint32_t file_bytes, std::uint32_t part,
                                          std::uint32_t chunks) noexcept {
  LanePlan plan;
  plan.part_bytes = part;
  plan.lanes = file_bytes / part + 1;
  plan.groups = plan.lanes <= kLanesOfGroup ? 1 : (plan.lanes - kLanesInTwoGroups - 1) / kStepOfGroup + 1;
  plan.chunks = chunks;
  return plan;
}

// `file_bytes`: of the whole file. A pool has room for 1.5 times the MCUs, as lanes that have not met yet
// find others, and for two chunks per lane that are not full.
SHARD_EXACT constexpr LanePlan plan_lanes(std::uint32_t mcus, std::uint32_t file_bytes) noexcept {
  std::uint32_t part = file_bytes / kLanesOfGroup + 1;
  if (part < kLeastBytesOfPart) part = kLeastBytesOfPart;
  if (part > kMostBytesOfPart) part = kMostBytesOfPart;
  LanePlan plan = plan_lanes(file_bytes, part, 0);
  // A block has two codes at least, so there are no more starts than half of the bits.
  const std::uint64_t most = std::uint64_t{file_bytes} * 4;
  const std::uint64_t starts = std::uint64_t{mcus} + mcus / 2;
  plan.chunks =
      static_cast<std::uint32_t>((starts < most ? starts : most) / kStartsOfChunk) + 2 * plan.slots();
  return plan;
}

}  // namespace shard::jpeg
