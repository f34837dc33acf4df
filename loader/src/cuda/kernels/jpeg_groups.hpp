// How the kernels of jpeg.cu divide their work, which JpegPlan must know.
#pragma once

#include <cstdint>

namespace shard::gpu {

inline constexpr std::uint32_t kJpegPieces = 128;  // of one image, per block
inline constexpr std::uint32_t kJpegBlocks = 128;  // 8 x 8 values
inline constexpr std::uint32_t kJpegQuad = 4;      // pixels of a row that a thread makes
inline constexpr std::uint32_t kJpegQuads = 256;

}  // namespace shard::gpu
