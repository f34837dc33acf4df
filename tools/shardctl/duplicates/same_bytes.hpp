// Makes sure that samples with equal digests are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "shardctl/duplicates/groups.hpp"

namespace shard::ctl {

// Compares the bytes of all members of each group. A group whose members are of several kinds becomes several
// groups; members that equal no other one are left out, and so are those for which `read` returns false
// (damaged samples). `read` sets `out` to the bytes of a sample and is called from several threads at once.
// Each thread has two buffers.
void keep_same_bytes(Members& members, unsigned threads,
                     const std::function<bool(std::uint64_t sample, std::vector<std::byte>& out)>& read);

}  // namespace shard::ctl
