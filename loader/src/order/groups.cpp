// Sampling from groups in proportions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "order/epoch_key.hpp"
#include "order/members.hpp"
#include "order/shares.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/sampling.hpp"

namespace shard {

namespace {

// Of the sequence as it is, and as versions before 2 of the sequence had it. Version 3: blocks of many groups
// are longer.
// A number of another version means other samples.
struct GroupDigests {
  std::uint64_t now = 0;
  std::uint64_t earlier = 0;
};
GroupDigests digests_of(const std::string& text, std::size_t groups) {
  return {xxh3((groups > kFewGroups ? "version 3 of " : "version 2 of ") + text), xxh3(text)};
}

// Their sum becomes 1.
std::vector<double> checked(std::span<const double> proportions, const Members& members) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  double sum = 0;
  for (std::size_t i = 0; i < proportions.size(); ++i) {
    if (!(proportions[i] >= 0) || !std::isfinite(proportions[i]))
      refuse(fmt::format("the proportion of group {} is {}; it must be 0 or more", i, proportions[i]));
    if (proportions[i] > 0 && members.size(i) == 0)
      refuse(fmt::format("group {} has the proportion {}, but no samples", i, proportions[i]));
    sum += proportions[i];
  }
  if (!(sum > 0) || !std::isfinite(sum))
    refuse(fmt::format("the proportions of {} groups add up to {}; at least one must be above 0",
                       proportions.size(), sum));
  std::vector<double> shares(proportions.begin(), proportions.end());
  for (double& share : shares) share /= sum;
  return shares;
}

// Shares: EqualShares or UnequalShares. proportions: of each group; their sum is 1.
template <class Shares>
class Groups final : public Sampling {
 public:
  Groups(Members members, Shares shares, std::vector<double> proportions, GroupDigests digests)
      : members_(std::move(members)),
        shares_(std::move(shares)),
        proportions_(std::move(proportions)),
        digests_(digests) {}

  std::uint64_t samples() const noexcept override { return members_.samples(); }
  std::uint64_t digest() const noexcept override { return digests_.now; }
  std::uint64_t earlier_digest() const noexcept override { return digests_.earlier; }

  void draw(const Epoch& epoch, std::span<std::uint64_t> positions) const override {
    const typename Shares::InEpoch shares(shares_, epoch);
    std::optional<Block> block;
    std::vector<Drawn> drawn(positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const BlockPlace place = shares.place(positions[i]);
      if (!block || block->key != place.key) block.emplace(place);
      const std::uint64_t slot = block->shuffled(place.at);
      const GroupSlots slots = shares.slots(place, positions[i], slot);
      const std::uint64_t size = members_.size(slots.group);
      // Visits are counted in the order of the slots, but where a pass through the group ends in this block:
      // there the draws of the one pass come before those of the next.
      std::uint64_t pass = slots.before / size;
      std::uint64_t in_pass = slots.before % size + slot - slots.begin;
      if (slots.before % size + (slots.end - slots.begin) > size) {
        const std::uint64_t visit = slots.before + block->rank_in_time(slots, place.at);
        pass = visit / size;
        in_pass = visit % size;
      }
      // A pass takes every member once.
      const std::uint64_t key = mix64(epoch_key(epoch.seed, pass, kVisits) ^ slots.group);
      drawn[i] = {slots.group, Permutation(size, key)(in_pass)};
      members_.prefetch(slots.group, drawn[i].rank);
    }
    for (std::size_t i = 0; i < positions.size(); ++i)
      positions[i] = members_.at(drawn[i].group, drawn[i].rank);
  }

  std::vector<Share> split(std::span<const std::uint16_t> part_of, std::size_t parts) const override {
    // The group of each sample, and with it how many of a group are in a part.
    std::vector<std::uint32_t> group_of(members_.samples());
    std::vector<std::uint64_t> counts(members_.groups() * parts);
    for (std::size_t group = 0; group < members_.groups(); ++group)
      for (std::uint64_t rank = 0; rank < members_.size(group); ++rank) {
        const std::uint64_t sample = members_.at(group, rank);
        group_of[sample] = static_cast<std::uint32_t>(group);
        ++counts[group * parts + part_of[sample]];
      }
    std::vector<std::vector<std::uint32_t>> of_part(parts);
    for (std::size_t i = 0; i < group_of.size(); ++i) of_part[part_of[i]].push_back(group_of[i]);
    std::vector<Share> shares(parts);
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<double> proportions(members_.groups());
      for (std::size_t group = 0; group < proportions.size(); ++group)
        if (const std::uint64_t count = counts[group * parts + part]; count != 0)
          proportions[group] =
              proportions_[group] * static_cast<double>(count) / static_cast<double>(members_.size(group));
      const double proportion = std::accumulate(proportions.begin(), proportions.end(), 0.0);
      if (proportion > 0) shares[part] = {grouped(of_part[part], proportions), proportion};
      of_part[part] = {};
    }
    return shares;
  }

 private:
  struct Drawn {
    std::size_t group;
    std::uint64_t rank;
  };
  struct Block {
    explicit Block(const BlockPlace& place) : key(place.key), shuffled(place.size, place.key) {}

    // How many of the group's positions in the block come before `at`.
    std::uint64_t rank_in_time(const GroupSlots& slots, std::uint64_t at) {
      if (slots.end - slots.begin == 1) return 0;
      std::vector<std::uint64_t>& positions = positions_of[slots.group];
      if (positions.empty()) {
        for (std::uint64_t slot = slots.begin; slot < slots.end; ++slot)
          positions.push_back(shuffled.inverse(slot));
        std::sort(positions.begin(), positions.end());
      }
      return static_cast<std::uint64_t>(std::lower_bound(positions.begin(), positions.end(), at) -
                                        positions.begin());
    }

    std::uint64_t key;
    Permutation shuffled;
    std::unordered_map<std::size_t, std::vector<std::uint64_t>> positions_of;  // by group, ascending
  };

  Members members_;
  Shares shares_;
  std::vector<double> proportions_;
  GroupDigests digests_;
};

// Groups that are drawn equally often have their own arithmetic. A single group has no others to be equal to.
bool have_equal_blocks(std::size_t groups) noexcept {
  return groups > 1 && (1000 % groups == 0 || groups > kFewGroups);
}

std::shared_ptr<const Sampling> make_groups(Members members, std::span<const double> proportions,
                                            GroupDigests digests) {
  std::vector<double> shares = checked(proportions, members);
  std::vector<std::size_t> drawn;
  bool equal = true;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    drawn.push_back(i);
    equal = equal && shares[i] == shares[drawn.front()];
  }
  if (equal && have_equal_blocks(drawn.size()))
    return std::make_shared<const Groups<EqualShares>>(std::move(members), EqualShares(std::move(drawn)),
                                                       std::move(shares), digests);
  UnequalShares unequal(shares);
  return std::make_shared<const Groups<UnequalShares>>(std::move(members), std::move(unequal),
                                                       std::move(shares), digests);
}

std::string text_of(std::span<const double> proportions) {
  std::string text = "groups";
  for (const double proportion : proportions) text += fmt::format(" {}", proportion);
  return text;
}

}  // namespace

std::shared_ptr<const Sampling> Sampling::mix(std::span<const Part> parts) {
  std::vector<std::uint64_t> sizes;
  std::vector<double> proportions;
  for (const Part& part : parts) {
    sizes.push_back(part.samples);
    proportions.push_back(part.proportion);
  }
  return make_groups(
      Members(sizes), proportions,
      digests_of(fmt::format("{} of {}", text_of(proportions), fmt::join(sizes, " ")), parts.size()));
}

std::shared_ptr<const Sampling> Sampling::grouped(std::span<const std::uint32_t> group_of,
                                                  std::span<const double> proportions) {
  for (std::size_t i = 0; i < group_of.size(); ++i)
    if (group_of[i] >= proportions.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("sample {} is of group {}; there are {} groups, numbered from 0", i,
                              group_of[i], proportions.size()));
  return make_groups(
      Members(group_of, proportions.size()), proportions,
      digests_of(fmt::format("{} of {}", text_of(proportions), to_hex(xxh3(std::as_bytes(group_of)))),
                 proportions.size()));
}

std::shared_ptr<const Sampling> Sampling::balanced(const Dataset& data) {
  std::vector<std::uint32_t> group_of(data.size());
  std::vector<std::int64_t> labels;  // of the groups
  std::unordered_map<std::int64_t, std::uint32_t> groups;
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    const std::int64_t label = data.label(i);
    const auto [at, added] = groups.emplace(label, static_cast<std::uint32_t>(groups.size()));
    if (added) labels.push_back(label);
    group_of[i] = at->second;
  }
  return grouped(group_of, std::vector<double>(labels.size(), 1.0));
}

}  // namespace shard
