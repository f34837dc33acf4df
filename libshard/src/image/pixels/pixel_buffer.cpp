#include "image/pixels/pixel_buffer.hpp"

#include <fmt/format.h>

#include <new>

#include "shard/error.hpp"

namespace shard::image {
namespace {
// A buffer at most this large is kept for any next image: one huge photo must not stay resident for a whole
// run.
constexpr std::size_t kKeepBytes = std::size_t{16} << 20;
}  // namespace

std::uint8_t* PixelBuffer::reserve(std::size_t size_bytes) {
  const bool wasteful = capacity_ > kKeepBytes && capacity_ / 2 > size_bytes;
  if (size_bytes <= capacity_ && !wasteful) return bytes_.get();
  bytes_.reset();
  capacity_ = 0;
  try {
    bytes_.reset(new std::uint8_t[size_bytes]);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::resource,
                fmt::format("no memory for {} bytes of pixels: run fewer jobs, or lower the bound on pixels",
                            size_bytes));
  }
  capacity_ = size_bytes;
  return bytes_.get();
}

void PixelBuffer::trim() noexcept {
  if (capacity_ <= kKeepBytes) return;
  bytes_.reset();
  capacity_ = 0;
}

}  // namespace shard::image
