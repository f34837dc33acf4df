// tools/wheel.d/later.c as a system with an old glibc sees it: no function is found,
// so it has to wait by the real-time clock.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

namespace {
void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "later.cpp: %s\n", what);
  std::exit(1);
}
}  // namespace

extern "C" void* dlsym(void*, const char*) { return nullptr; }

int main() {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::unique_lock lock(mutex);
  for (const int wanted : {0, 1, 250, 1100}) {
    const auto from = steady_clock::now();
    check(!changed.wait_for(lock, milliseconds(wanted), [&] { return done; }), "woken without a reason");
    const auto waited = steady_clock::now() - from;
    check(waited >= milliseconds(wanted) && waited < milliseconds(wanted + 2000),
          "waits another time than asked");
  }
  std::jthread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    const std::lock_guard guard(mutex);
    done = true;
    changed.notify_one();
  });
  const auto from = steady_clock::now();
  check(changed.wait_for(lock, std::chrono::seconds(20), [&] { return done; }), "never woken");
  check(steady_clock::now() - from < std::chrono::seconds(10), "woken late");
  std::random_device random;
  check(random() != random() || random() != random(), "random_device gives one value only");
}
