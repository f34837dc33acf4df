// MD5 (RFC 1321), which object stores compare uploads with (Content-MD5, ETag), and SHA-256 (FIPS 180-4),
// which signatures of requests have of a body. Errors: resource where mbedTLS makes no digest.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shard {

// Not for anything that must resist an attacker.
using Md5Digest = std::array<std::byte, 16>;
Md5Digest md5(std::span<const std::byte> bytes);

// The same over bytes that come in pieces. One thread at a time.
class Md5Stream {
 public:
  Md5Stream();
  ~Md5Stream();

  void update(std::span<const std::byte> bytes);
  Md5Digest digest();  // once, after the last piece

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 32 lower-case hexadecimal digits.
std::string to_hex(const Md5Digest& digest);
// RFC 4648, with padding: the value of Content-MD5.
std::string to_base64(const Md5Digest& digest);

// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace shard
