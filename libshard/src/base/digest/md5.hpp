// MD5 (RFC 1321): what object stores compare uploads with (Content-MD5, ETag).
// Not for anything that must resist an attacker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shard {

using Md5Digest = std::array<std::byte, 16>;

// One thread at a time.
class Md5Stream {
 public:
  void update(std::span<const std::byte> bytes) noexcept;
  Md5Digest digest() const noexcept;  // of all bytes so far

 private:
  void take_block(const std::byte* block) noexcept;

  std::array<std::uint32_t, 4> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<std::byte, 64> waiting_{};
  std::uint64_t size_bytes_ = 0;
};

Md5Digest md5(std::span<const std::byte> bytes) noexcept;

// 32 lower-case hexadecimal digits.
std::string to_hex(const Md5Digest& digest);
// RFC 4648, with padding: the value of Content-MD5.
std::string to_base64(const Md5Digest& digest);

}  // namespace shard
