// One zstd frame per sample (RFC 8878), with the content size in its header and no dictionary. The only file
// that names zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard {

// Thread safe: each thread keeps its own context. Level 1 to 19. Throws resource when there is no memory.
std::vector<std::byte> zstd_compress(std::span<const std::byte> sample, int level);

// Throws corrupt, saying why, unless `frame` is exactly one frame that states `content_bytes` of content and
// has blocks for as many. Reads only the headers: to be called before anything is allocated for the content.
void zstd_check_frame(std::span<const std::byte> frame, std::uint64_t content_bytes);

// The least that a frame of `content_bytes` can take: a block of at most 128 KiB takes at least 4 bytes (RFC
// 8878, 3.1.1.2).
constexpr std::uint64_t zstd_least_frame_bytes(std::uint64_t content_bytes) noexcept {
  return content_bytes / 32768;
}

// Fills `out` from a frame that must hold exactly out.size() bytes and end at frame.end(). Throws corrupt,
// saying why.
void zstd_decompress(std::span<const std::byte> frame, std::span<std::byte> out);

}  // namespace shard
