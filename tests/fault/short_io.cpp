// Loaded before the C library (LD_PRELOAD): reads and writes of files move at most 1000 bytes, and every
// third call is interrupted instead. With SHARD_SHORT_IO_LOG, the file of that name says at exit how often.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t kMost = 1000;
std::atomic<unsigned long> g_calls{0};
std::atomic<unsigned long> g_short{0};
std::atomic<unsigned long> g_interrupted{0};

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The number of bytes to move; 0: fail with EINTR.
std::size_t allowed(std::size_t count) {
  if (count == 0) return count;
  if (g_calls++ % 3 == 2) {
    ++g_interrupted;
    errno = EINTR;
    return 0;
  }
  if (count > kMost) ++g_short;
  return std::min(count, kMost);
}

struct Report {
  ~Report() {
    const char* path = std::getenv("SHARD_SHORT_IO_LOG");
    std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "short %lu interrupted %lu\n", g_short.load(), g_interrupted.load());
    std::fclose(file);
  }
} g_report;

}  // namespace

extern "C" {

ssize_t pwrite(int fd, const void* data, size_t count, off_t offset) {
  const std::size_t step = allowed(count);
  if (step == 0 && count != 0) return -1;
  return real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(fd, data, step, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t count, off_t offset) {
  return pwrite(fd, data, count, offset);
}

ssize_t pread(int fd, void* data, size_t count, off_t offset) {
  const std::size_t step = allowed(count);
  if (step == 0 && count != 0) return -1;
  return real<ssize_t (*)(int, void*, size_t, off_t)>("pread")(fd, data, step, offset);
}
ssize_t pread64(int fd, void* data, size_t count, off_t offset) { return pread(fd, data, count, offset); }

ssize_t read(int fd, void* data, size_t count) {
  const std::size_t step = fd > 2 ? allowed(count) : count;
  if (step == 0 && count != 0) return -1;
  return real<ssize_t (*)(int, void*, size_t)>("read")(fd, data, step);
}
}
