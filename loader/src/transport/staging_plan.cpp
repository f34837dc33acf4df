#include "transport/staging_plan.hpp"

#include <unistd.h>

#include <algorithm>

namespace shard {

std::uint64_t last_cache_bytes() noexcept {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return 0;
}

StagingPlan staging_plan(std::uint64_t batch_bytes, std::uint32_t prefetch,
                         std::uint64_t cache_bytes) noexcept {
  constexpr std::uint64_t kFew = 3;  // one being read, one waiting, one being filled
  // More buffers than kFew are used only if all together take at most this.
  constexpr std::uint64_t kSmallBytes = std::uint64_t{32} << 20U;
  const std::uint64_t slots = std::uint64_t{prefetch} + 1;
  const std::uint64_t fit = cache_bytes / 2 / batch_bytes;
  if (fit < 2) return {slots, false};
  return {std::min({slots, fit, std::max(kFew, kSmallBytes / batch_bytes)}), true};
}

}  // namespace shard
