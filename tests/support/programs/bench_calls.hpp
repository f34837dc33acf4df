// What measuring functions of shardbench are called with.
#pragma once

#include <atomic>

namespace shard::bench {

inline const std::atomic<bool> kGoOn{false};  // nobody stops it
inline constexpr auto kNoProgress = [](const auto&) {};

}  // namespace shard::bench
