// UniqueHandle: the one owner type for things that must be given back (descriptors, streams, events, ...).
#pragma once

#include <utility>

namespace shard {

// Traits: `using type = ...; static type invalid() noexcept; static void close(type) noexcept;`
// Thread safety: as an int.
template <class Traits>
class UniqueHandle {
 public:
  using type = typename Traits::type;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(type handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueHandle() { reset(); }

  type get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Traits::invalid(); }
  type release() noexcept { return std::exchange(handle_, Traits::invalid()); }
  void reset(type handle = Traits::invalid()) noexcept {
    type old = std::exchange(handle_, handle);
    if (old != Traits::invalid()) Traits::close(old);
  }

 private:
  type handle_ = Traits::invalid();
};

struct FdTraits {
  using type = int;
  static type invalid() noexcept { return -1; }
  static void close(type fd) noexcept;
};
using UniqueFd = UniqueHandle<FdTraits>;  // a file descriptor

}  // namespace shard
