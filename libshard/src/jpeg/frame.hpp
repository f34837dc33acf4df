// A frame of codec jpeg (docs/format.md), and what follows from what the head of a shard says of its file.
//
//   | the file's own bytes | zeros | index (index.hpp) | zeros |
//   0                      bytes   index_offset()      |       frame_bytes()
//                                  a multiple of 16            a multiple of 16
//
// So the geometry and the size of a frame are known before the frame is read. Plain data and functions that
// host and device share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/host_device.hpp"
#include "jpeg/frame_file.hpp"
#include "jpeg/header.hpp"
#include "jpeg/index.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kFrameAlignment = 16;

// Where the index begins in the frame.
SHARD_EXACT constexpr std::uint64_t index_offset(const FrameFile& file) noexcept {
  return (std::uint64_t{file.bytes} + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// The one size that a frame of this file has.
SHARD_EXACT constexpr std::uint64_t frame_bytes(const FrameFile& file) noexcept {
  const std::uint64_t end = index_offset(file) + index_bytes(geometry_of(file));
  return (end + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// Refuses what no frame has: no bytes, sides beyond 1 to 65,500, components other than 1, 3 or 4, factors
// beyond 1 to 4 or that do not divide the largest, more than 10 blocks per MCU, factors other than 1 of a
// component by itself, another orientation than 1 to 8. Errors: corrupt, with the value and its bounds.
void check_frame_file(const FrameFile& file);

// `header`: parse_header() of a file of `file_bytes`. Errors: invalid_argument (another orientation than 1 to
// 8).
FrameFile frame_file_of(const Header& header, std::size_t file_bytes, std::uint32_t orientation);

// `index`: of this file, index_bytes(geometry_of(file)) long. Errors: invalid_argument (other sizes).
std::vector<std::byte> make_frame(const FrameFile& file, std::span<const std::byte> file_bytes,
                                  std::span<const std::byte> index);

// Views of a frame.
struct FrameParts {
  std::span<const std::byte> file;
  std::span<const std::byte> index;
};
// Errors: corrupt (another size than frame_bytes(), other bytes than zeros between and behind the parts).
FrameParts split_frame(const FrameFile& file, std::span<const std::byte> frame);

}  // namespace shard::jpeg
