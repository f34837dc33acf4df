// Memory of a thread for the bytes of one sample while a codec works on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard {

// Kept from one sample to the next, unless it is large. One object per thread at a time.
class ScratchBytes {
 public:
  explicit ScratchBytes(std::size_t size) : bytes_(size > kKeptBytes ? own_ : kept()) { bytes_.resize(size); }
  ScratchBytes(const ScratchBytes&) = delete;
  ScratchBytes& operator=(const ScratchBytes&) = delete;
  std::span<std::uint8_t> values() { return bytes_; }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{16} << 20;
  static std::vector<std::uint8_t>& kept() {
    thread_local std::vector<std::uint8_t> bytes;
    return bytes;
  }
  std::vector<std::uint8_t> own_;
  std::vector<std::uint8_t>& bytes_;
};

}  // namespace shard
