// Markers of JPEG files (T.81, table B.1).
#pragma once

#include <cstdint>

#include "base/host_device.hpp"

namespace shard::jpeg {

inline constexpr std::uint8_t kMarkerSof0 = 0xC0;
inline constexpr std::uint8_t kMarkerSof1 = 0xC1;
inline constexpr std::uint8_t kMarkerDht = 0xC4;
inline constexpr std::uint8_t kMarkerDac = 0xCC;
inline constexpr std::uint8_t kMarkerRst0 = 0xD0;
inline constexpr std::uint8_t kMarkerRst7 = 0xD7;
inline constexpr std::uint8_t kMarkerSoi = 0xD8;
inline constexpr std::uint8_t kMarkerEoi = 0xD9;
inline constexpr std::uint8_t kMarkerSos = 0xDA;
inline constexpr std::uint8_t kMarkerDqt = 0xDB;
inline constexpr std::uint8_t kMarkerDri = 0xDD;
inline constexpr std::uint8_t kMarkerApp0 = 0xE0;
inline constexpr std::uint8_t kMarkerApp14 = 0xEE;

// APPn and COM: decoders skip those that they do not know.
SHARD_EXACT constexpr bool is_ancillary(std::uint8_t marker) noexcept {
  return (marker >= kMarkerApp0 && marker <= 0xEF) || marker == 0xFE;
}

}  // namespace shard::jpeg
