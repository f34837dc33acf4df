#include "shardctl/duplicates/near_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <span>

#include "base/system/parallel.hpp"
#include "shard/error.hpp"

namespace shard::ctl {
namespace {

constexpr unsigned kQuarters = 4;
constexpr std::uint32_t kQuarterValues = 65536;
constexpr std::uint64_t kHashesAtOnce = 1024;  // that a thread takes

std::uint32_t quarter_of(std::uint64_t hash, unsigned quarter) {
  return static_cast<std::uint32_t>(hash >> (16 * quarter)) & 0xFFFFU;
}

unsigned differing_bits(std::uint64_t a, std::uint64_t b) {
  return static_cast<unsigned>(std::popcount(a ^ b));
}

// Hashes by the value of one quarter: those of value v are ids[begin[v]] to ids[begin[v + 1] - 1].
struct QuarterTable {
  QuarterTable(std::span<const std::uint64_t> hashes, unsigned quarter)
      : begin(kQuarterValues + 1), ids(hashes.size()) {
    for (const std::uint64_t hash : hashes) ++begin[quarter_of(hash, quarter) + 1];
    for (std::uint32_t value = 0; value < kQuarterValues; ++value) begin[value + 1] += begin[value];
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t id = 0; id < hashes.size(); ++id) ids[next[quarter_of(hashes[id], quarter)]++] = id;
  }
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> ids;
};

// Disjoint sets of numbers that several threads may unite at once (Anderson, Woll: Wait-free parallel
// algorithms for the union-find problem, 1991). The root of a set is its smallest number.
class DisjointSets {
 public:
  explicit DisjointSets(std::uint32_t count) : parent_(count) {
    for (std::uint32_t i = 0; i < count; ++i) parent_[i].store(i, std::memory_order_relaxed);
  }
  std::uint32_t root(std::uint32_t i) {
    for (;;) {
      std::uint32_t parent = parent_[i].load(std::memory_order_relaxed);
      const std::uint32_t above = parent_[parent].load(std::memory_order_relaxed);
      if (parent == above) return parent;
      parent_[i].compare_exchange_weak(parent, above, std::memory_order_relaxed);  // a shorter way next time
      i = above;
    }
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    for (;;) {
      a = root(a);
      b = root(b);
      if (a == b) return;
      if (a < b) std::swap(a, b);
      std::uint32_t expected = a;
      if (parent_[a].compare_exchange_strong(expected, b, std::memory_order_relaxed)) return;
    }
  }

 private:
  std::vector<std::atomic<std::uint32_t>> parent_;
};

// All 16-bit masks of at most `most` bits.
std::vector<std::uint32_t> masks_of(int most) {
  std::vector<std::uint32_t> masks;
  for (std::uint32_t mask = 0; mask < kQuarterValues; ++mask) {
    if (std::popcount(mask) <= most) masks.push_back(mask);
  }
  return masks;
}

// Unites all pairs of hashes, which are distinct, that differ in at most `distance` bits.
void unite_near(std::span<const std::uint64_t> hashes, unsigned distance, unsigned threads,
                DisjointSets& sets) {
  for (unsigned quarter = 0; quarter < kQuarters; ++quarter) {
    // If no quarter up to number distance % 4 differed in at most distance / 4 bits, nor any other one in at
    // most one less, the sum would be more than `distance` (section 3.1 of the paper).
    const int most = static_cast<int>(distance / kQuarters) - (quarter <= distance % kQuarters ? 0 : 1);
    if (most < 0) continue;
    const std::vector<std::uint32_t> masks = masks_of(most);
    const QuarterTable table(hashes, quarter);
    parallel_for(
        threads, (hashes.size() + kHashesAtOnce - 1) / kHashesAtOnce, [&](unsigned, std::uint64_t block) {
          const std::uint64_t end = std::min<std::uint64_t>(hashes.size(), (block + 1) * kHashesAtOnce);
          for (std::uint64_t at = block * kHashesAtOnce; at < end; ++at) {
            const auto id = static_cast<std::uint32_t>(at);
            const std::uint32_t value = quarter_of(hashes[id], quarter);
            for (const std::uint32_t mask : masks) {
              for (std::uint32_t i = table.begin[value ^ mask]; i < table.begin[(value ^ mask) + 1]; ++i) {
                const std::uint32_t other = table.ids[i];
                if (other > id && differing_bits(hashes[id], hashes[other]) <= distance)
                  sets.unite(id, other);
              }
            }
          }
        });
  }
}

}  // namespace

Members group_by_hash(std::vector<HashedSample> hashes, unsigned distance, unsigned threads) {
  if (distance > kMaxHashDistance) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a distance of {} bits: at most {} of the 64", distance, kMaxHashDistance));
  }
  if (hashes.size() >= std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::resource,
                fmt::format("{} samples: at most {} can be compared by how they look; compare fewer at once",
                            hashes.size(), std::numeric_limits<std::uint32_t>::max() - 1));
  }
  std::sort(hashes.begin(), hashes.end(), [](const HashedSample& a, const HashedSample& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.sample < b.sample;
  });
  std::vector<std::uint64_t> distinct;
  for (const HashedSample& hashed : hashes) {
    if (distinct.empty() || distinct.back() != hashed.hash) distinct.push_back(hashed.hash);
  }
  DisjointSets sets(static_cast<std::uint32_t>(distinct.size()));
  if (distance > 0) unite_near(distinct, distance, threads, sets);

  std::vector<std::uint32_t> sizes(distinct.size());  // samples of each root
  std::size_t id = 0;
  for (const HashedSample& hashed : hashes) {
    if (hashed.hash != distinct[id]) ++id;
    ++sizes[sets.root(static_cast<std::uint32_t>(id))];
  }
  Members members;
  id = 0;
  for (const HashedSample& hashed : hashes) {
    if (hashed.hash != distinct[id]) ++id;
    const std::uint32_t root = sets.root(static_cast<std::uint32_t>(id));
    if (sizes[root] > 1) members.push_back({hashed.sample, root, static_cast<std::uint32_t>(id)});
  }
  number_groups(members);
  // Until here `distance` was the number of the hash.
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::uint64_t hash = distinct[members[i].distance];
    if (i == 0 || members[i].group != members[i - 1].group) first = hash;
    members[i].distance = differing_bits(hash, first);
  }
  return members;
}

}  // namespace shard::ctl
