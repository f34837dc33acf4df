// XXH3-64 with seed 0 (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md): the checksum of samples,
// frames and heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard {

std::uint64_t xxh3(std::span<const std::byte> bytes) noexcept;
std::uint64_t xxh3(std::string_view text) noexcept;

// The same over bytes that come in pieces. One thread at a time. Throws std::bad_alloc when made.
class Xxh3Stream {
 public:
  Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  ~Xxh3Stream();

  void update(std::span<const std::byte> bytes) noexcept;
  void update(std::string_view text) noexcept;
  std::uint64_t digest() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 16 lower-case hexadecimal digits, and back (nothing when it is not exactly that).
std::string to_hex(std::uint64_t value);
std::optional<std::uint64_t> from_hex(std::string_view digits) noexcept;

}  // namespace shard
