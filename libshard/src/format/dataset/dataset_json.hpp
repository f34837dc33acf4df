// The last bytes of dataset.json: `  "digest": "xxh3:<16 digits>"\n}\n`. The digest is of all bytes before
// them.
#pragma once

#include <cstdint>
#include <string_view>

namespace shard {

inline constexpr std::string_view kDigestBefore = "  \"digest\": \"xxh3:";
inline constexpr std::string_view kDigestAfter = "\"\n}\n";
inline constexpr std::size_t kDigestTailBytes = kDigestBefore.size() + 16 + kDigestAfter.size();
inline constexpr std::string_view kDatasetFormat = "shard dataset";
inline constexpr std::uint64_t kMaxDatasetBytes = std::uint64_t{1} << 28;

}  // namespace shard
