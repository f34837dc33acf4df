#include "base/digest/sha256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace shard {
namespace {

using Sha256Words = std::array<std::uint32_t, 8>;

constexpr std::array<std::uint32_t, 64> primes() {
  std::array<std::uint32_t, 64> found{};
  std::uint32_t count = 0;
  for (std::uint32_t n = 2; count < 64; ++n) {
    bool prime = true;
    for (std::uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (prime) found[count++] = n;
  }
  return found;
}

// The first 32 bits of the fractional part of the `degree`-th root (2 or 3) of n:
// the largest r with (r / 2^32)^degree <= n.
constexpr std::uint32_t fraction_of_root(std::uint32_t n, int degree) {
  std::uint64_t low = 0;
  std::uint64_t high = std::uint64_t{1} << 37U;  // the square root of 311 is less than 32
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    __extension__ using Wide = unsigned __int128;
    const Wide square = Wide{middle} * middle;
    bool fits = false;
    if (degree == 2)
      fits = square <= Wide{n} << 64U;
    else  // middle^3 <= n 2^96, where middle^2 has up to 74 bits: the lowest 32 of the product are split off
      fits = (square >> 32U) * middle + (((square & 0xffffffffU) * middle) >> 32U) < Wide{n} << 64U;
    (fits ? low : high) = middle;
  }
  return static_cast<std::uint32_t>(low);
}

constexpr std::array<std::uint32_t, 64> cube_roots() {
  constexpr std::array<std::uint32_t, 64> kPrimes = primes();
  std::array<std::uint32_t, 64> values{};
  for (std::size_t i = 0; i < 64; ++i) values[i] = fraction_of_root(kPrimes[i], 3);
  return values;
}

constexpr Sha256Words square_roots() {
  constexpr std::array<std::uint32_t, 64> kPrimes = primes();
  Sha256Words values{};
  for (std::size_t i = 0; i < 8; ++i) values[i] = fraction_of_root(kPrimes[i], 2);
  return values;
}

constexpr std::array<std::uint32_t, 64> kRoots = cube_roots();
static_assert(kRoots[0] == 0x428a2f98 && kRoots[63] == 0xc67178f2 && square_roots()[0] == 0x6a09e667);

std::uint32_t load_big_u32(const std::byte* bytes) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8U | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

void take_block(Sha256Words& state, const std::byte* block) noexcept {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = load_big_u32(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3U;
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10U;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  Sha256Words v = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    const std::uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + kRoots[i] + w[i];
    const std::uint32_t s0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    const std::uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    v = {t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) state[i] += v[i];
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256Words state = square_roots();
  const std::uint64_t bits = bytes.size() * 8;
  while (bytes.size() >= 64) {
    take_block(state, bytes.data());
    bytes = bytes.subspan(64);
  }
  std::array<std::byte, 128> tail{};
  std::copy(bytes.begin(), bytes.end(), tail.begin());
  tail[bytes.size()] = std::byte{0x80};
  const std::size_t end = bytes.size() < 56 ? 64 : 128;
  for (std::size_t i = 0; i < 8; ++i) tail[end - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
  for (std::size_t at = 0; at < end; at += 64) take_block(state, tail.data() + at);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t word : state)
    for (unsigned shift = 32; shift > 0; shift -= 4) text += kDigits[(word >> (shift - 4)) & 15U];
  return text;
}

}  // namespace shard
