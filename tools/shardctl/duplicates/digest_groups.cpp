#include "shardctl/duplicates/digest_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "base/system/parallel.hpp"
#include "shard/error.hpp"

namespace shard::ctl {
namespace {

constexpr unsigned kParts = 256;            // by the highest bits of a digest, each sorted by one thread
constexpr std::uint64_t kBlock = 1U << 16;  // samples that a thread takes at once

std::size_t part_of(std::uint64_t digest) { return static_cast<std::size_t>(digest >> 56U); }

// Calls `body(sample)` for every sample.
template <class Body>
void for_each_sample(std::uint64_t samples, unsigned threads, const Body& body) {
  parallel_for(threads, (samples + kBlock - 1) / kBlock, [&](unsigned, std::uint64_t block) {
    const std::uint64_t end = std::min(samples, (block + 1) * kBlock);
    for (std::uint64_t sample = block * kBlock; sample < end; ++sample) body(sample);
  });
}

// Moves the digests of each part together, in place (American flag sort: McIlroy, Bostic, McIlroy,
// Engineering Radix Sort, 1993). Returns where each part begins, and the end.
std::array<std::size_t, kParts + 1> partition_digests(std::vector<std::uint64_t>& digests) {
  std::array<std::size_t, kParts + 1> begin{};
  for (const std::uint64_t digest : digests) ++begin[part_of(digest) + 1];
  for (std::size_t part = 0; part < kParts; ++part) begin[part + 1] += begin[part];
  std::array<std::size_t, kParts + 1> next = begin;
  for (std::size_t part = 0; part < kParts; ++part) {
    while (next[part] < begin[part + 1]) {
      std::uint64_t digest = digests[next[part]];
      while (part_of(digest) != part) std::swap(digest, digests[next[part_of(digest)]++]);
      digests[next[part]++] = digest;
    }
  }
  return begin;
}

// Digests that occur more than once, ascending, each with the number of its first member among all members.
struct Repeated {
  std::vector<std::uint64_t> digests;
  std::vector<std::uint64_t> begin;  // one more than digests: the last is the number of members
  std::array<std::size_t, 65537> by_prefix{};

  // Number of a digest, or digests.size().
  std::size_t find(std::uint64_t digest) const {
    const auto prefix = static_cast<std::size_t>(digest >> 48U);
    const auto from = digests.begin() + static_cast<std::ptrdiff_t>(by_prefix[prefix]);
    const auto to = digests.begin() + static_cast<std::ptrdiff_t>(by_prefix[prefix + 1]);
    const auto at = std::lower_bound(from, to, digest);
    return at != to && *at == digest ? static_cast<std::size_t>(at - digests.begin()) : digests.size();
  }
};

// Uses the memory of `sorted` for those that stay.
Repeated repeated_of(std::vector<std::uint64_t> sorted) {
  Repeated repeated;
  std::size_t kept = 0;
  std::uint64_t members = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    const std::uint64_t digest = sorted[i];
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == digest) ++end;
    if (end - i > 1) {
      sorted[kept++] = digest;
      repeated.begin.push_back(members);
      members += end - i;
      ++repeated.by_prefix[static_cast<std::size_t>(digest >> 48U) + 1];
    }
    i = end;
  }
  repeated.begin.push_back(members);
  sorted.resize(kept);
  sorted.shrink_to_fit();
  repeated.begin.shrink_to_fit();
  repeated.digests = std::move(sorted);
  for (std::size_t i = 0; i + 1 < repeated.by_prefix.size(); ++i)
    repeated.by_prefix[i + 1] += repeated.by_prefix[i];
  return repeated;
}

[[noreturn]] void changed_meanwhile() {
  throw Error(
      ErrorCode::corrupt,
      "a digest is another one than before: a program writes to the data set; start again when it is done");
}

}  // namespace

Members group_by_digest(std::uint64_t samples, unsigned threads,
                        const std::function<std::uint64_t(std::uint64_t sample)>& digest_of) {
  std::vector<std::uint64_t> digests(samples);
  for_each_sample(samples, threads, [&](std::uint64_t sample) { digests[sample] = digest_of(sample); });
  const auto begin = partition_digests(digests);
  parallel_for(threads, kParts, [&](unsigned, std::uint64_t part) {
    std::sort(digests.begin() + static_cast<std::ptrdiff_t>(begin[part]),
              digests.begin() + static_cast<std::ptrdiff_t>(begin[part + 1]));
  });
  Repeated repeated = repeated_of(std::move(digests));
  if (repeated.digests.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::resource,
                fmt::format("{} groups of equal samples; at most {} can be listed: compare fewer at once",
                            repeated.digests.size(), std::numeric_limits<std::uint32_t>::max()));
  }
  Members members(repeated.begin.back());
  if (members.empty()) return members;
  std::vector<std::uint64_t> next(repeated.begin.begin(), repeated.begin.end() - 1);
  for_each_sample(samples, threads, [&](std::uint64_t sample) {
    const std::size_t found = repeated.find(digest_of(sample));
    if (found == repeated.digests.size()) return;
    const std::uint64_t at = std::atomic_ref(next[found]).fetch_add(1, std::memory_order_relaxed);
    if (at >= repeated.begin[found + 1]) changed_meanwhile();
    members[at] = {sample, static_cast<std::uint32_t>(found), 0};
  });
  if (!std::equal(next.begin(), next.end(), repeated.begin.begin() + 1)) changed_meanwhile();
  next = {};
  repeated = {};
  number_groups(members);
  return members;
}

}  // namespace shard::ctl
