// The keys of a data set that is being written: a set of 128-bit hashes, 16 bytes each in a table that is at
// most 3/4 full. Two keys of 10^12 would share a hash with a probability of 10^-15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/digest/checksum.hpp"

namespace shard::convert {

// Not thread safe.
class KeySet {
 public:
  bool contains(std::string_view key) const {
    return !slots_.empty() && slots_[place(hash(key))] == hash(key);
  }
  // False: it is there already.
  bool insert(std::string_view key) {
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    Hash& slot = slots_[place(hash(key))];
    if (slot != Hash{}) return false;
    slot = hash(key);
    ++size_;
    return true;
  }

 private:
  struct Hash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Hash&) const = default;
  };

  static Hash hash(std::string_view key) {
    const std::uint64_t low = xxh3(key);
    Xxh3Stream other;
    other.update(key);
    other.update(std::string_view("\0high", 5));
    return {low, other.digest() | 1U};  // never the empty slot
  }
  // Where the hash is, or where it belongs.
  std::size_t place(const Hash& wanted) const {
    std::size_t at = wanted.low & (slots_.size() - 1);
    while (slots_[at] != Hash{} && slots_[at] != wanted) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Hash> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Hash& one : old)
      if (one != Hash{}) slots_[place(one)] = one;
  }

  std::vector<Hash> slots_;  // a power of two of them
  std::size_t size_ = 0;
};

}  // namespace shard::convert
