#include "shardctl/duplicates/groups.hpp"

#include <algorithm>
#include <numeric>

namespace shard::ctl {

void number_groups(Members& members) {
  const auto by_group = [](const Member& a, const Member& b) {
    return a.group != b.group ? a.group < b.group : a.sample < b.sample;
  };
  std::sort(members.begin(), members.end(), by_group);
  std::vector<std::uint64_t> first;  // sample of each group
  std::uint32_t next = 0;
  for (std::size_t begin = 0; begin < members.size(); ++next) {
    const std::uint32_t old = members[begin].group;
    first.push_back(members[begin].sample);
    for (; begin < members.size() && members[begin].group == old; ++begin) members[begin].group = next;
  }
  std::vector<std::uint32_t> order(first.size());
  std::iota(order.begin(), order.end(), 0U);
  if (std::is_sorted(first.begin(), first.end())) return;
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return first[a] < first[b]; });
  std::vector<std::uint32_t> number(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  for (Member& member : members) member.group = number[member.group];
  std::sort(members.begin(), members.end(), by_group);
}

}  // namespace shard::ctl
