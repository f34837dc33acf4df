#include "device/guarded_copy.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <mutex>

// ThreadSanitizer does not see non-temporal stores: there, memcpy (which it does) stands in for them.
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#define SHARD_STREAMING_STORES 1
#include <emmintrin.h>
#endif

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

constexpr std::size_t kStreamingBytes = std::size_t{32} << 10U;

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

void copy_streaming(std::byte* target, const std::byte* source, std::size_t size) noexcept {
#if defined(SHARD_STREAMING_STORES)
  if (size >= kStreamingBytes) {
    const std::size_t head = (16 - reinterpret_cast<std::uintptr_t>(target) % 16) % 16;
    std::memcpy(target, source, head);
    std::size_t i = head;
    for (; i + 64 <= size; i += 64) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i + 16));
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i + 32));
      const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i + 48));
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i), a);
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i + 16), b);
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i + 32), c);
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i + 48), d);
    }
    std::memcpy(target + i, source + i, size - i);
    _mm_sfence();  // the stores are seen by whoever sees the event that follows
    return;
  }
#endif
  std::memcpy(target, source, size);
}

}  // namespace shard
