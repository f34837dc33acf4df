#include "device/guarded_copy.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include <mutex>

#include "shard/error.hpp"

namespace shard {

namespace {

struct sigaction g_previous;  // what handled SIGBUS before us

void on_bus(int signal, siginfo_t* info, void* context) {
  if (sigjmp_buf* frame = detail::bus_frame()) {
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

void install_bus_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &g_previous);
  });
}

void throw_bus_error(const char* what) {
  throw Error(ErrorCode::io,
              fmt::format("{}: a mapped shard could not be read: it was cut short or its disk failed", what));
}

}  // namespace detail

}  // namespace shard
