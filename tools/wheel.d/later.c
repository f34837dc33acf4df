// What libstdc++ of g++ 12 takes from glibc and glibc 2.28 does not have: linked into a wheel's extension and programs by
// tools/wheel.d/glibc. Hidden, so nothing else in the process sees it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

// glibc 2.32: false costs atomic operations where there is one thread, and is always right.
char __libc_single_threaded = 0;

// glibc 2.36: std::random_device.
uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != sizeof value)
    abort();  // so few bytes come whole, or there is no such call
  return value;
}

// glibc 2.30: std::condition_variable::wait_for. Where the process has it, it is taken; else the wait is one until a time of the
// real-time clock. If somebody sets that clock meanwhile, the wait ends too early or too late, as in libstdc++ for that glibc.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  typedef int Function(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static void* found = NULL;  // itself: not looked for yet
  void* function = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (function == NULL) {
    function = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    if (function == NULL) function = &found;
    __atomic_store_n(&found, function, __ATOMIC_RELAXED);
  }
  if (function != &found) return ((Function*)function)(condition, mutex, clock, until);

  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  const int64_t second = 1000000000;
  int64_t nanoseconds = (int64_t)real.tv_nsec + (until->tv_nsec - now.tv_nsec);
  int64_t seconds = (int64_t)real.tv_sec + (until->tv_sec - now.tv_sec);
  while (nanoseconds < 0) nanoseconds += second, --seconds;
  while (nanoseconds >= second) nanoseconds -= second, ++seconds;
  if (seconds < 0) seconds = 0;
  real.tv_sec = seconds;
  real.tv_nsec = nanoseconds;
  return pthread_cond_timedwait(condition, mutex, &real);
}
