// Loaded before the C library (LD_PRELOAD): a file system that locks as NFS does, which takes flock() for a
// lock on the bytes of a file: alone only through a descriptor that may write, so never on a folder.
// SHARD_TEST_LOCKS=none: it has no locks.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

extern "C" int flock(int fd, int operation) {
  using Function = int (*)(int, int);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "flock"));
  const char* const kind = std::getenv("SHARD_TEST_LOCKS");
  const int access = fcntl(fd, F_GETFL) & O_ACCMODE;
  const int wanted = operation & ~LOCK_NB;
  if (kind != nullptr && std::string_view(kind) == "none") {
    errno = ENOLCK;
    return -1;
  }
  if ((wanted == LOCK_EX && access == O_RDONLY) || (wanted == LOCK_SH && access == O_WRONLY)) {
    errno = EBADF;
    return -1;
  }
  return real(fd, operation);
}
