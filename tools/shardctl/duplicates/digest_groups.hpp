// Finds equal digests among many, in memory that does not depend on what they are.
#pragma once

#include <cstdint>
#include <functional>

#include "shardctl/duplicates/groups.hpp"

namespace shard::ctl {

// Groups of the samples 0 to samples - 1 whose digests are equal. `digest_of` is called twice for each
// sample, from several threads at once, and must return the same both times.
//
// The digests alone are sorted first (8 bytes a sample). Those that occur more than once stay, and a second
// pass finds the samples that have them: up to 28 bytes for each of these. Errors: resource for more than
// 2^32 groups; corrupt if digests changed between the passes; those of `digest_of`.
Members group_by_digest(std::uint64_t samples, unsigned threads,
                        const std::function<std::uint64_t(std::uint64_t sample)>& digest_of);

}  // namespace shard::ctl
