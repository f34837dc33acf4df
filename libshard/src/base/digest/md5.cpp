#include "base/digest/md5.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

namespace shard {
namespace {

// RFC 1321, 3.4: the integer part of 2^32 |sin(i + 1)|.
const std::array<std::uint32_t, 64>& sines() {
  static const std::array<std::uint32_t, 64> table = [] {
    std::array<std::uint32_t, 64> values{};
    for (std::size_t i = 0; i < 64; ++i)
      values[i] = static_cast<std::uint32_t>(
          std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
    return values;
  }();
  return table;
}

constexpr std::array<std::array<int, 4>, 4> kShifts{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

std::uint32_t load_u32(const std::byte* bytes) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

void Md5Stream::take_block(const std::byte* block) noexcept {
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 16; ++i) words[i] = load_u32(block + 4 * i);
  const std::array<std::uint32_t, 64>& sine = sines();
  std::uint32_t a = state_[0];
  std::uint32_t b = state_[1];
  std::uint32_t c = state_[2];
  std::uint32_t d = state_[3];
  const auto step = [&](std::uint32_t mixed, std::size_t i, std::size_t word) {
    const std::uint32_t next = b + std::rotl(a + mixed + words[word] + sine[i], kShifts[i / 16][i % 4]);
    a = d;
    d = c;
    c = b;
    b = next;
  };
  for (std::size_t i = 0; i < 16; ++i) step((b & c) | (~b & d), i, i);
  for (std::size_t i = 16; i < 32; ++i) step((b & d) | (c & ~d), i, (5 * i + 1) % 16);
  for (std::size_t i = 32; i < 48; ++i) step(b ^ c ^ d, i, (3 * i + 5) % 16);
  for (std::size_t i = 48; i < 64; ++i) step(c ^ (b | ~d), i, (7 * i) % 16);
  state_[0] += a;
  state_[1] += b;
  state_[2] += c;
  state_[3] += d;
}

void Md5Stream::update(std::span<const std::byte> bytes) noexcept {
  std::size_t have = static_cast<std::size_t>(size_bytes_ % 64);
  size_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (have == 0 && bytes.size() >= 64) {
      take_block(bytes.data());
      bytes = bytes.subspan(64);
      continue;
    }
    const std::size_t taken = std::min(64 - have, bytes.size());
    std::memcpy(waiting_.data() + have, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    have += taken;
    if (have < 64) return;
    take_block(waiting_.data());
    have = 0;
  }
}

Md5Digest Md5Stream::digest() const noexcept {
  Md5Stream end = *this;
  std::array<std::byte, 72> tail{std::byte{0x80}};
  const std::size_t have = static_cast<std::size_t>(size_bytes_ % 64);
  const std::size_t padding = (have < 56 ? 56 : 120) - have;
  for (std::size_t i = 0; i < 8; ++i)
    tail[padding + i] = static_cast<std::byte>((size_bytes_ * 8) >> (8 * i));
  end.update(std::span(tail).first(padding + 8));
  Md5Digest digest{};
  for (std::size_t i = 0; i < 16; ++i) digest[i] = static_cast<std::byte>(end.state_[i / 4] >> (8 * (i % 4)));
  return digest;
}

Md5Digest md5(std::span<const std::byte> bytes) noexcept {
  Md5Stream stream;
  stream.update(bytes);
  return stream.digest();
}

std::string to_hex(const Md5Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4U)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::string to_base64(const Md5Digest& digest) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < digest.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8U | (i + k < digest.size() ? std::to_integer<std::uint32_t>(digest[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > digest.size() ? '=' : kDigits[(bits >> (18 - 6 * k)) & 63U];
  }
  return text;
}

}  // namespace shard
