// Copies past the cache. The number of memory reads in progress bounds the rate of one thread, and the
// processor prefetches only inside a page. So a copy is cut into four ranges that are copied alternately.
#include <cstdint>
#include <cstring>

#include "base/system/streaming_copy.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/system/streaming_copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shard::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kLine = 64;
constexpr std::size_t kRanges = 4;

// One line; `target` on a line's boundary.
HWY_INLINE void stream_line(std::uint8_t* target, const std::uint8_t* source) {
  const hn::CappedTag<std::uint8_t, kLine> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  for (std::size_t i = 0; i < kLine; i += kLanes) hn::Stream(hn::LoadU(d, source + i), d, target + i);
}

void copy_lines(std::uint8_t* target, const std::uint8_t* source, std::size_t lines) {
  const std::size_t range = lines / kRanges * kLine;
  for (std::size_t i = 0; i < range; i += kLine)
    for (std::size_t r = 0; r < kRanges; ++r) stream_line(target + r * range + i, source + r * range + i);
  for (std::size_t i = kRanges * range; i < lines * kLine; i += kLine) stream_line(target + i, source + i);
  hwy::FlushStream();  // the stores are seen by whoever sees the event that follows
}

}  // namespace shard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard {

HWY_EXPORT(copy_lines);

void copy_streaming(std::byte* target, const std::byte* source, std::size_t size) noexcept {
// ThreadSanitizer does not see non-temporal stores: there, memcpy (which it does) stands in for them.
#if !defined(__SANITIZE_THREAD__)
  constexpr std::size_t kStreamingBytes = std::size_t{32} << 10U;
  constexpr std::size_t kLine = 64;
  if (size >= kStreamingBytes) {
    const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine;
    const std::size_t lines = (size - head) / kLine;
    std::memcpy(target, source, head);
    HWY_DYNAMIC_DISPATCH(copy_lines)
    (reinterpret_cast<std::uint8_t*>(target + head), reinterpret_cast<const std::uint8_t*>(source + head),
     lines);
    const std::size_t done = head + lines * kLine;
    std::memcpy(target + done, source + done, size - done);
    return;
  }
#endif
  std::memcpy(target, source, size);
}

}  // namespace shard
#endif
