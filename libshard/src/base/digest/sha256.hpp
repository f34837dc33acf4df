// SHA-256 (FIPS 180-4): what signatures of requests to object stores have of a body.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace shard {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);

// Of no bytes.
inline constexpr const char* kSha256OfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

}  // namespace shard
