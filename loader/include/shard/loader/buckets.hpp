// Buckets: a few delivered sizes for samples of any size. Each sample belongs to the bucket that keeps most
// of it, and each batch has samples of one bucket only (LoaderOptions::buckets).
//
// The idea is NovelAI's ("NovelAI improvements on Stable Diffusion", 2022, and their repository
// novelai-aspect-ratio-bucketing); PixArt-alpha (Chen et al., ICLR 2024) trains with it too.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/error.hpp"

namespace shard {

// A delivered size, in pixels.
struct Bucket {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  auto operator<=>(const Bucket&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

// A sample has the number of its bucket in 16 bits.
inline constexpr std::size_t kMaxBuckets = 65'536;

// Throws invalid_argument if the list is empty or too long, a side is 0, or a bucket is listed twice.
void check_buckets(std::span<const Bucket> buckets);

// The place in the list of the bucket that keeps most of a sample of height x width pixels. Thread safe.
//
// A sample w x h that is scaled to cover a bucket W x H and then cropped keeps the share
// min(wH, hW) / max(wH, hW) of its pixels. That is exp(-|log(w/h) - log(W/H)|), so the bucket that keeps most
// is the one with the nearest aspect ratio in logarithms. NovelAI and PixArt take the smallest difference of
// the plain ratios instead, so a sample and the same sample turned by 90 degrees can get buckets that do not
// correspond.
//
// Shares are compared exactly, as products of integers, so the result is the same on every machine. If shares
// are equal, the bucket of the larger area is taken, and of equal areas the first.
//
// Throws invalid_argument for an empty list and for sides of 0. It does not look for buckets that are listed
// twice (check_buckets does): the first one is taken.
std::size_t bucket_of(std::uint32_t height, std::uint32_t width, std::span<const Bucket> buckets);

// Buckets of about the same area, sorted by width / height. No two have the same ratio. For each width that
// is a multiple of `step`, there is the largest height that is a multiple of `step` and has width x height <=
// area. The same is done with width and height exchanged, and the largest square is added. Buckets whose long
// side is more than max_aspect times the short side are left out. They are not made shorter instead, which
// would give buckets of smaller areas.
//
// This is NovelAI's algorithm, except that theirs bounds each side (256 to 1024 pixels) instead of the ratio,
// and adds 512 x 512 as the square.
//
// area: pixels, step x step to kMaxSide x kMaxSide. step: pixels, 1 to kMaxSide. max_aspect: at least 1. No
// side is above kMaxSide (65,535). Throws invalid_argument outside of these bounds, and if there were more
// than kMaxBuckets.
std::vector<Bucket> make_buckets(std::uint64_t area, std::uint32_t step, double max_aspect);

}  // namespace shard
