#include "harness/interrupt.hpp"

#include <signal.h>

namespace shard::bench {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");
struct sigaction former_int;
struct sigaction former_term;

void on_signal(int) { flag = true; }

}  // namespace

bool interrupted() noexcept { return flag; }
const std::atomic<bool>& interrupt_flag() noexcept { return flag; }

InterruptGuard::InterruptGuard() {
  flag = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &former_int);
  sigaction(SIGTERM, &action, &former_term);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &former_int, nullptr);
  sigaction(SIGTERM, &former_term, nullptr);
}

}  // namespace shard::bench
