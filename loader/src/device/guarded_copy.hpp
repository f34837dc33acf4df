// Reading mapped files that may shrink meanwhile, and copies that do not pollute the cache.
#pragma once

#include <cstddef>
#include <csetjmp>
#include <csignal>

namespace shard {

// Copies with non-temporal stores where the target is large: the copy is not read again soon. Ranges do not overlap.
void copy_streaming(std::byte* target, const std::byte* source, std::size_t size_bytes) noexcept;

namespace detail {
// The frame that a SIGBUS on this thread returns to; null: none.
sigjmp_buf*& bus_frame() noexcept;
// Installs the handler once in the process; SIGBUS outside of a frame goes on to the handler that was there before.
void install_bus_handler();
[[noreturn]] void throw_bus_error(const char* what);
}  // namespace detail

// Runs `body`; a page that cannot be read (the file under the mapping was cut, or its disk failed) is an Error(io) and not the end
// of the process. `body` must not hold objects with destructors, nor throw: it is left by a jump.
template <class Body>
void guarded(const char* what, const Body& body) {
  detail::install_bus_handler();
  sigjmp_buf frame;
  sigjmp_buf*& current = detail::bus_frame();
  sigjmp_buf* const outer = current;
  if (sigsetjmp(frame, 0) != 0) {
    detail::bus_frame() = outer;
    detail::throw_bus_error(what);
  }
  current = &frame;
  body();
  current = outer;
}

}  // namespace shard
