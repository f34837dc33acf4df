// Reading mapped files that may shrink meanwhile (base/system/guarded_read.hpp), and copies that do not
// pollute the cache.
#pragma once

#include <cstddef>

#include "base/system/guarded_read.hpp"

namespace shard {

// Copies a large range with non-temporal stores, because it is not read again soon. The ranges must not
// overlap.
void copy_streaming(std::byte* target, const std::byte* source, std::size_t size_bytes) noexcept;

}  // namespace shard
