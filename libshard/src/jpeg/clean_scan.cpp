#include "jpeg/clean_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "jpeg/marker_codes.hpp"
#include "shard/error.hpp"

namespace shard::jpeg {
namespace {

constexpr std::size_t kMostDataBytes = std::size_t{1} << 29;  // positions have 32 bits

}  // namespace

// `at`: of a 0xFF. Returns the offset where data go on; the end of the file if they do not.
std::size_t CleanScan::read_marker(std::span<const std::byte> file, std::size_t at, std::size_t data_offset) {
  const std::size_t first = at;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint8_t>(file[i]); };
  while (at + 1 < file.size() && byte(at + 1) == 0xFF) ++at;
  if (at + 1 >= file.size())
    throw Error(ErrorCode::corrupt,
                fmt::format("JPEG: the file ends within its image data, at byte {}", file.size()));
  const std::uint8_t marker = byte(at + 1);
  if (marker == 0) {
    if (at != first)
      throw Error(ErrorCode::unsupported,
                  fmt::format("JPEG: not for the kernels, but for libjpeg-turbo: bytes "
                              "FF FF 00 at offset {}",
                              first));
    bytes_[size_++] = 0xFF;
  } else if (marker >= kMarkerRst0 && marker <= kMarkerRst7) {
    if (marker - kMarkerRst0 != static_cast<int>(interval_ends_.size() % 8))
      throw Error(ErrorCode::corrupt, fmt::format("JPEG: restart marker {} at offset {} instead of {}",
                                                  marker - kMarkerRst0, first, interval_ends_.size() % 8));
    interval_ends_.push_back(static_cast<std::uint32_t>(size_));
  } else {
    interval_ends_.push_back(static_cast<std::uint32_t>(size_));
    end_ = first;
    return file.size();
  }
  const std::size_t next = at + 2;
  removed_.push_back(
      {static_cast<std::uint32_t>(size_), static_cast<std::uint32_t>(next - data_offset - size_)});
  return next;
}

void CleanScan::assign(std::span<const std::byte> file, std::size_t data_offset) {
  const std::size_t most = file.size() - data_offset;
  if (most >= kMostDataBytes)
    throw Error(ErrorCode::unsupported,
                fmt::format("JPEG: not for the kernels, but for libjpeg-turbo: {} bytes "
                            "of image data; less than 2^29 are possible",
                            most));
  if (bytes_.size() < most + kPaddingBytes) bytes_.resize(most + kPaddingBytes);
  size_ = end_ = 0;
  removed_.clear();
  interval_ends_.clear();
  for (std::size_t at = data_offset; end_ == 0;) {
    const void* found = at < file.size() ? std::memchr(file.data() + at, 0xFF, file.size() - at) : nullptr;
    if (found == nullptr)
      throw Error(ErrorCode::corrupt,
                  fmt::format("JPEG: the file ends within its image data, at byte {}", file.size()));
    const auto stop = static_cast<std::size_t>(static_cast<const std::byte*>(found) - file.data());
    std::memcpy(bytes_.data() + size_, file.data() + at, stop - at);
    size_ += stop - at;
    at = read_marker(file, stop, data_offset);
  }
  std::memset(bytes_.data() + size_, 0, kPaddingBytes);
}

}  // namespace shard::jpeg
