// One zstd frame a sample (RFC 8878), with the content size in its header and no dictionary. The one place
// that knows zstd.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace shard {

// Thread safe: each thread keeps its own context. Level 1 to 19. Throws resource when there is no memory.
std::vector<std::byte> zstd_compress(std::span<const std::byte> sample, int level);

// Fills `out` from a frame that must hold exactly out.size() bytes and end at frame.end(). Throws corrupt,
// saying why.
void zstd_decompress(std::span<const std::byte> frame, std::span<std::byte> out);

}  // namespace shard
