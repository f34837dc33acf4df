#include "base/digest/checksum.hpp"

#include <xxhash.h>

#include <new>

namespace shard {

std::uint64_t xxh3(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t xxh3(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }

struct Xxh3Stream::State {
  XXH3_state_t* handle = XXH3_createState();
  State() {
    if (handle == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(handle); }
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {}
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;
Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::update(std::span<const std::byte> bytes) noexcept {
  if (!bytes.empty()) XXH3_64bits_update(state_->handle, bytes.data(), bytes.size());
}

void Xxh3Stream::update(std::string_view text) noexcept {
  if (!text.empty()) XXH3_64bits_update(state_->handle, text.data(), text.size());
}

std::uint64_t Xxh3Stream::digest() const noexcept { return XXH3_64bits_digest(state_->handle); }

std::string to_hex(std::uint64_t value) {
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) digits[i] = "0123456789abcdef"[value & 15];
  return digits;
}

std::optional<std::uint64_t> from_hex(std::string_view digits) noexcept {
  if (digits.size() != 16) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

}  // namespace shard
