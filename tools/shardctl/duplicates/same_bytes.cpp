#include "shardctl/duplicates/same_bytes.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "base/system/parallel.hpp"

namespace shard::ctl {
namespace {

// What `distance` says of a member meanwhile.
constexpr std::uint32_t kUnread = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kLeftOut = kUnread - 1;

struct Buffers {
  std::vector<std::byte> first;
  std::vector<std::byte> other;
};

// Where each group begins, and the end.
std::vector<std::size_t> begins_of(const Members& members) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == 0 || members[i].group != members[i - 1].group) begins.push_back(i);
  }
  begins.push_back(members.size());
  return begins;
}

}  // namespace

void keep_same_bytes(Members& members, unsigned threads,
                     const std::function<bool(std::uint64_t sample, std::vector<std::byte>& out)>& read) {
  const std::vector<std::size_t> begins = begins_of(members);
  std::vector<Buffers> buffers(threads);
  // Each round takes the first member that is not read yet, and those that equal it get its number. One round
  // is enough unless two different samples have the same digest.
  parallel_for(threads, begins.size() - 1, [&](unsigned thread, std::uint64_t at) {
    const std::span<Member> group(members.data() + begins[at], begins[at + 1] - begins[at]);
    auto& [first, other] = buffers[thread];
    for (Member& member : group) member.distance = kUnread;
    for (std::uint32_t kind = 0; kind < group.size(); ++kind) {
      Member& leader = group[kind];
      if (leader.distance != kUnread) continue;
      leader.distance = read(leader.sample, first) ? kind : kLeftOut;
      if (leader.distance == kLeftOut) continue;
      bool alone = true;
      for (Member& member : group.subspan(kind + 1)) {
        if (member.distance != kUnread) continue;
        if (!read(member.sample, other)) {
          member.distance = kLeftOut;
        } else if (first == other) {
          member.distance = kind;
          alone = false;
        }
      }
      if (alone) leader.distance = kLeftOut;
    }
  });
  // The kinds of a group become groups: numbered as the position of their first member.
  for (std::size_t at = 0; at + 1 < begins.size(); ++at) {
    for (std::size_t i = begins[at]; i < begins[at + 1]; ++i) {
      if (members[i].distance != kLeftOut)
        members[i].group = static_cast<std::uint32_t>(begins[at]) + members[i].distance;
    }
  }
  std::erase_if(members, [](const Member& member) { return member.distance == kLeftOut; });
  for (Member& member : members) member.distance = 0;
  number_groups(members);
}

}  // namespace shard::ctl
