// Groups of samples that are equal or alike, as a flat list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shard::ctl {

// One sample of a group. `sample` counts over all data sets that are compared (SetList).
struct Member {
  std::uint64_t sample = 0;
  std::uint32_t group = 0;
  // Bits by which the perceptual hash differs from that of the first of the group; 0 for exact duplicates.
  std::uint32_t distance = 0;
  bool operator==(const Member&) const = default;
};

// Ordered by group and then by sample. Every group has at least two members.
using Members = std::vector<Member>;

// Sorts the members and numbers the groups from 0, in the order of their first samples.
void number_groups(Members& members);

// Calls `visit(span of the members of a group)` for each group.
template <class Visit>
void for_each_group(std::span<const Member> members, Visit&& visit) {
  for (std::size_t begin = 0; begin < members.size();) {
    std::size_t end = begin + 1;
    while (end < members.size() && members[end].group == members[begin].group) ++end;
    visit(members.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace shard::ctl
