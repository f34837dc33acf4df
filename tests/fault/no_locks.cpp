// Loaded before the C library (LD_PRELOAD): a file system whose locks exclude nobody, as some network file
// systems' do from node to node: every lock is granted at once. SHARD_TEST_NODE is the node's name.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

extern "C" {

int flock(int, int) { return 0; }

int gethostname(char* name, size_t size) {
  const char* const node = std::getenv("SHARD_TEST_NODE");
  std::strncpy(name, node != nullptr ? node : "node", size);
  return 0;
}

int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (command == F_OFD_SETLK) return 0;
  using Function = int (*)(int, int, ...);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "fcntl"));
  return real(fd, command, argument);
}
int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(fd, command, argument);
}
}
