// Reading mapped files that may shrink meanwhile (base/guarded_read.hpp), and copies that do not pollute the
// cache.
#pragma once

#include <cstddef>

#include "base/guarded_read.hpp"

namespace shard {

// Copies with non-temporal stores where the target is large: the copy is not read again soon. Ranges do not
// overlap.
void copy_streaming(std::byte* target, const std::byte* source, std::size_t size_bytes) noexcept;

}  // namespace shard
