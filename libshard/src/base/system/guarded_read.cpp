#include "base/system/guarded_read.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>

namespace shard {

namespace {

struct sigaction g_previous;  // what handled SIGBUS before us

void on_bus(int signal, siginfo_t* info, void* context) {
  if (sigjmp_buf* frame = detail::bus_frame()) {
    detail::bus_address() = static_cast<const std::byte*>(info->si_addr);
    // The frame keeps no mask (that would be a system call for every copy). The mask in here may block SIGBUS
    // in spite of SA_NODEFER: ThreadSanitizer puts a handler of its own before this one, with a full mask,
    // and the thread's next SIGBUS would then end the process.
    ::pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(*frame, 1);
  }
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler == SIG_DFL || g_previous.sa_handler == SIG_IGN) {
    ::sigaction(SIGBUS, &g_previous,
                nullptr);  // the access is repeated and ends the process as it would have
  } else {
    g_previous.sa_handler(signal);
  }
}

}  // namespace

namespace detail {

sigjmp_buf*& bus_frame() noexcept {
  thread_local sigjmp_buf* frame = nullptr;
  return frame;
}

const std::byte*& bus_address() noexcept {
  thread_local const std::byte* address = nullptr;
  return address;
}

// Threads that come here at once may all set the handler; one of them keeps what was there before.
void install_bus_handler() {
  static std::atomic<bool> installed{false};
  static std::atomic<bool> kept{false};
  if (installed.load(std::memory_order_acquire)) return;
  struct sigaction action {};
  action.sa_sigaction = on_bus;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  struct sigaction previous {};
  ::sigaction(SIGBUS, &action, &previous);
  const bool ours = (previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction == on_bus;
  if (!ours && !kept.exchange(true)) g_previous = previous;
  installed.store(true, std::memory_order_release);
}

void throw_bus_error(const char* what) { throw UnreadablePage(what, bus_address()); }

}  // namespace detail

UnreadablePage::UnreadablePage(const char* what, const std::byte* address)
    : Error(ErrorCode::io,
            fmt::format("{}: a page of the file could not be read: it was cut short, or its disk failed",
                        what)),
      address_(address) {}

bool guarded_copy(std::span<std::byte> out, std::span<const std::byte> mapped) noexcept {
  detail::install_bus_handler();
  detail::BusFrame frame;
  if (sigsetjmp(frame.jump, 0) != 0) return false;
  if (!out.empty()) std::memcpy(out.data(), mapped.data(), out.size());
  return true;
}

}  // namespace shard
