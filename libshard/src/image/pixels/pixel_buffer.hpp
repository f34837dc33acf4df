// Memory for pixels. It is not initialised. It is reused, and freed if it is far larger than requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shard::image {

class PixelBuffer {
 public:
  // At least `size_bytes`; what was there before is lost. Error: resource (no memory).
  std::uint8_t* reserve(std::size_t size_bytes);
  std::uint8_t* data() const noexcept { return bytes_.get(); }
  // Frees it unless it is small.
  void trim() noexcept;

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace shard::image
