// The alignment of reads past the page cache (O_DIRECT).
#pragma once

#include <cstdint>
#include <functional>

namespace shard {

// Reads one block of `alignment` bytes, at an offset and to an address that are multiples of it and of no
// larger power of two; returns 0 or an errno.
using ProbeRead = std::function<int(std::uint32_t alignment)>;

// The smallest of `stated`, 2 * `stated`, 4 * `stated`, ... that `read` accepts. For smaller ones it returns
// EINVAL. `stated`: a power of two. Errors: unsupported (none up to 1 MiB, or another errno).
std::uint32_t find_alignment(std::uint32_t stated, const ProbeRead& read);

// Offsets, sizes and addresses of reads of the file must be multiples of the result. It is found by trying
// reads, first with the alignment that statx() states (Linux 6.1 and later), or else with 4096 bytes.
// `descriptor`: opened with O_DIRECT. Errors: unsupported.
std::uint32_t direct_alignment(int descriptor, std::uint64_t file_size_bytes);

}  // namespace shard
