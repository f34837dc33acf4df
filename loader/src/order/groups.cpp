// Sampling from groups in proportions.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/checksum.hpp"
#include "base/quote.hpp"
#include "order/epoch_key.hpp"
#include "order/members.hpp"
#include "order/quotas.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/sampling.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kBlock = 1000;

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

class Groups final : public Sampling {
 public:
  Groups(Members members, std::span<const double> proportions, std::uint64_t digest)
      : members_(std::move(members)),
        shares_(checked(proportions, members_)),
        full_(shares_, kBlock),
        digest_(digest) {}

  std::uint64_t samples() const noexcept override { return members_.samples(); }
  std::uint64_t digest() const noexcept override { return digest_; }

  void draw(const Epoch& epoch, std::span<std::uint64_t> positions) const override {
    const std::uint64_t blocks = epoch.length / kBlock;
    const Quotas last(shares_, epoch.length % kBlock);
    // Blocks are numbered over all epochs. So far nobody trains: the numbers only have to stay below 2^63.
    const std::uint64_t number = epoch.number % ((std::uint64_t{1} << 62U) / (epoch.length + 1));
    std::optional<Block> block;
    std::vector<Drawn> drawn(positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::uint64_t k = positions[i] / kBlock;
      if (!block || block->index != k)
        block.emplace(k, Permutation(k < blocks ? kBlock : epoch.length % kBlock,
                                     mix64(epoch_key(epoch.seed, epoch.number, kBlocks) ^ k)));
      const std::uint64_t slot = block->shuffled(positions[i] % kBlock);
      const std::uint64_t full_before = number * blocks + std::min(k, blocks);
      const Quotas& quotas = k < blocks ? full_ : last;
      const std::uint64_t of_its_kind = k < blocks ? full_before : number;
      const std::size_t group = quotas.group_at(of_its_kind, slot);
      const std::uint64_t before = full_.before(full_before, group) + last.before(number, group) + slot -
                                   quotas.begin(of_its_kind, group);
      const std::uint64_t size = members_.size(group);
      // A visit takes every member once.
      const std::uint64_t key = mix64(epoch_key(epoch.seed, before / size, kVisits) ^ group);
      drawn[i] = {group, Permutation(size, key)(before % size)};
      members_.prefetch(group, drawn[i].rank);
    }
    for (std::size_t i = 0; i < positions.size(); ++i)
      positions[i] = members_.at(drawn[i].group, drawn[i].rank);
  }

 private:
  struct Drawn {
    std::size_t group;
    std::uint64_t rank;
  };
  struct Block {
    Block(std::uint64_t number, Permutation order) : index(number), shuffled(order) {}
    std::uint64_t index;  // in the epoch
    Permutation shuffled;
  };

  Members members_;
  std::vector<double> shares_;
  Quotas full_;
  std::uint64_t digest_;
};

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
  const std::uint64_t digest = xxh3(fmt::format("{} of {}", text_of(proportions), fmt::join(sizes, " ")));
  return std::make_shared<const Groups>(Members(sizes), proportions, digest);
}

std::shared_ptr<const Sampling> Sampling::grouped(std::span<const std::uint32_t> group_of,
                                                  std::span<const double> proportions) {
  for (std::size_t i = 0; i < group_of.size(); ++i)
    if (group_of[i] >= proportions.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("sample {} is of group {}; there are {} groups, numbered from 0", i,
                              group_of[i], proportions.size()));
  const std::uint64_t digest =
      xxh3(fmt::format("{} of {}", text_of(proportions), to_hex(xxh3(std::as_bytes(group_of)))));
  return std::make_shared<const Groups>(Members(group_of, proportions.size()), proportions, digest);
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
