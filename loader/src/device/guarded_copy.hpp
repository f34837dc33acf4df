// Reading mapped files that may shrink meanwhile, and copies that do not pollute the cache.
#pragma once

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <utility>

namespace shard {

// Copies with non-temporal stores where the target is large: the copy is not read again soon. Ranges do not
// overlap.
void copy_streaming(std::byte* target, const std::byte* source, std::size_t size_bytes) noexcept;

namespace detail {
// The frame that a SIGBUS on this thread returns to; null: none.
sigjmp_buf*& bus_frame() noexcept;
// Installs the handler once in the process; SIGBUS outside of a frame goes on to the handler that was there
// before.
void install_bus_handler();
[[noreturn]] void throw_bus_error(const char* what);
}  // namespace detail

// Runs `body`; a page that cannot be read (the file under the mapping was cut, or its disk failed) is an
// Error(io) and not the end of the process. `body` may throw; objects whose destructors matter must not live
// inside it across reads: a failing read leaves it by a jump.
template <class Body>
void guarded(const char* what, const Body& body) {
  detail::install_bus_handler();
  struct Frame {
    sigjmp_buf jump;
    sigjmp_buf* outer = std::exchange(detail::bus_frame(), &jump);
    ~Frame() { detail::bus_frame() = outer; }
  } frame;
  if (sigsetjmp(frame.jump, 0) != 0) detail::throw_bus_error(what);
  body();
}

}  // namespace shard
