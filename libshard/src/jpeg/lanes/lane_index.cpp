#include "jpeg/lanes/lane_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

using FileLane = LaneDecoder<FileBytes>;

void run_lane(FileLane& lane, bool more) {
  while (more)
    if (lane.fetch() && lane.read_codes()) more = lane.turn();
}

// As a block of threads does it.
void run_group(const ScanPlan& image, const Scan<FileBytes>& scan, const StartPool& pool,
               const LanePlan& plan, std::uint32_t group, std::span<Lane> slots) {
  std::vector<FileLane> lanes;
  const std::uint32_t count = plan.lanes_of(group);
  lanes.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    FileLane& lane = lanes.emplace_back(image, scan, pool);
    run_lane(lane, lane.begin(plan, LanePlan::first_lane(group) + i));
    lane.publish(slots[i]);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    run_lane(lanes[i], lanes[i].join(slots.data() + i + 1, std::min(count - i - 1, plan.parts_behind())));
    lanes[i].finish(slots[i]);
  }
}

void pack_skips(const HuffmanTable& table, PackedSkip* skips) {
  LookUp look_up;
  make_look_up(table, look_up.entries);
  for (std::uint32_t i = 0; i < kPackedSkips; ++i) skips[i] = packed_skip(look_up.entries, i);
}

// Lanes that a block of threads has at hand.
constexpr std::uint32_t kPart = 256;

Fault write_entries(LaneChain<FileBytes>& chain, const StartPool& pool, const LanePlan& plan,
                    std::span<const Lane> lanes) {
  std::array<LaneLink, kPart> links;
  chain.begin();
  Fault fault = Fault::none;
  for (std::uint32_t first = 0; first < plan.lanes && fault == Fault::none; first += kPart) {
    const std::uint32_t count = std::min(kPart, plan.lanes - first);
    std::array<LaneEntry, kPart> entries{};
    for (std::uint32_t i = 0; i < count; ++i) links[i] = LaneLink(lanes[plan.slot_of(first + i)]);
    fault = chain.follow(links.data(), entries.data(), first, first + count);
    for (std::uint32_t i = 0; i < count && fault == Fault::none; ++i) {
      const LaneEntry& entry = entries[i];
      const Lane& lane = lanes[plan.slot_of(first + i)];
      if (entry.enter == kNoStart) continue;
      StartReader starts(pool, lane.first_chunk, lane.count);
      for (; !starts.at_end() && fault == Fault::none; starts.next())
        if (starts.number() >= entry.enter) fault = chain.write(lane, entry, starts.number(), starts.get());
      if (fault == Fault::none) fault = chain.write(lane, entry, lane.count, lane.exit);
    }
  }
  return fault;
}

}  // namespace

LaneIndex::Result LaneIndex::build(std::span<const std::byte> file, const Header& header) {
  if (file.size() >= kMostIndexedBytes)
    throw Error(ErrorCode::unsupported, fmt::format("JPEG: a file of {} bytes; less than {} can be indexed",
                                                    file.size(), kMostIndexedBytes));
  return build(file, header, plan_lanes(header.layout.mcus(), static_cast<std::uint32_t>(file.size())));
}

LaneIndex::Result LaneIndex::build(std::span<const std::byte> file, const Header& header,
                                   const LanePlan& plan) {
  const Layout& layout = header.layout;
  Result result;
  result.plan = plan;
  starts_.resize(std::size_t{result.plan.chunks} * kStartsOfChunk);
  links_.resize(result.plan.chunks);
  lanes_.assign(result.plan.slots(), {});
  result.index.resize(index_bytes(layout));
  const StartPool pool{starts_.data(), links_.data(), &result.chunks_taken, result.plan.chunks};

  codes_.resize(std::size_t{2} * kMostTables);
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    const Plane& plane = layout.planes[c];
    make_codes(header.dc[plane.dc], codes_[plane.dc]);
    make_codes(header.ac[plane.ac], codes_[kMostTables + plane.ac]);
  }
  std::array<std::uint16_t, kMostComponents> dc{};
  std::array<std::uint16_t, kMostComponents> ac{};
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    dc[c] = static_cast<std::uint16_t>(layout.planes[c].dc * kLookUpEntries);
    ac[c] = static_cast<std::uint16_t>((kMostTables + layout.planes[c].ac) * kLookUpEntries);
  }
  skips_.resize(std::size_t{kPackedTables} * kPackedSkips);
  std::array<std::uint16_t, kMostComponents> skip{};
  std::uint32_t tables = 0;
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    std::uint32_t same = 0;
    while (layout.planes[same].ac != layout.planes[c].ac) ++same;
    skip[c] = same < c ? skip[same] : packed_skips_of(tables++);
    if (same == c && skip[c] != kNoSkip) pack_skips(header.ac[layout.planes[c].ac], skips_.data() + skip[c]);
  }
  const ScanPlan image =
      plan_scan(layout, {{0, layout.mcu_rows}, {0, layout.mcu_columns}}, dc.data(), ac.data(), skip.data());
  const Scan<FileBytes> scan{FileBytes(file), header.data_offset, static_cast<std::uint32_t>(file.size()),
                             codes_[0].entries, skips_.data()};
  for (std::uint32_t group = 0; group < result.plan.groups; ++group)
    run_group(image, scan, pool, result.plan, group,
              std::span(lanes_).subspan(std::size_t{group} * kLanesOfGroup, kLanesOfGroup));

  const IndexTarget target(result.index.data(), image);
  LaneChain<FileBytes> chain(image, scan, result.plan, pool, lanes_.data(), target);
  result.fault = write_entries(chain, pool, result.plan, lanes_);
  if (result.fault != Fault::none && chain.may_be_wrong()) result.fault = chain.read_whole();
  result.read_alone = chain.read_alone();
  return result;
}

}  // namespace shard::jpeg
