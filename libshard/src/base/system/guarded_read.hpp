// Reading memory mappings of files that may shrink meanwhile.
//
// The first call installs a handler of SIGBUS. It passes every SIGBUS that does not come from a guarded read
// on this thread to the handler that was there before.
#pragma once

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <span>
#include <utility>

#include "shard/error.hpp"

namespace shard {

// A page of mapped memory could not be read: its file was cut short, or its disk failed. Code io.
class UnreadablePage : public Error {
 public:
  UnreadablePage(const char* what, const std::byte* address);
  // Where the read failed.
  const std::byte* address() const noexcept { return address_; }

 private:
  const std::byte* address_;
};

namespace detail {
// The frame to which a SIGBUS on this thread returns. Null: there is none.
sigjmp_buf*& bus_frame() noexcept;
// Where the thread's last such read failed.
const std::byte*& bus_address() noexcept;
struct BusFrame {
  sigjmp_buf jump;
  sigjmp_buf* outer = std::exchange(bus_frame(), &jump);
  BusFrame() = default;
  BusFrame(const BusFrame&) = delete;
  BusFrame& operator=(const BusFrame&) = delete;
  ~BusFrame() { bus_frame() = outer; }
};
// Takes no lock, so a child that was forked meanwhile can call it again.
void install_bus_handler();
[[noreturn]] void throw_bus_error(const char* what);
}  // namespace detail

// Runs `body`. If it reads a page that cannot be read (the mapped file was cut, or its disk failed), this
// throws UnreadablePage, and the process goes on. `body` may throw. A failed read leaves it by a jump, so no
// object with a destructor that matters may live inside it across reads.
template <class Body>
void guarded(const char* what, const Body& body) {
  detail::install_bus_handler();
  detail::BusFrame frame;
  if (sigsetjmp(frame.jump, 0) != 0) detail::throw_bus_error(what);
  body();
}

// Copies mapped bytes to `out`, which has the same size. False: a page of `mapped` could not be read, and the
// content of `out` is undefined.
[[nodiscard]] bool guarded_copy(std::span<std::byte> out, std::span<const std::byte> mapped) noexcept;

}  // namespace shard
