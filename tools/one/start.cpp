// shardify or shardctl with SHARD_ONE_PROGRAM: starts shardbench, which lies beside it, under its own name.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

int main(int argc, char** argv) {
  std::string self(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  self.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  if (self.empty() && argc > 0) self = argv[0];  // without /proc
  const std::size_t folder = self.rfind('/') + 1;
  std::string name = self.substr(folder);
  const std::string program = self.substr(0, folder) + "shardbench";
  if (argc > 0) argv[0] = name.data();
  ::execvp(program.c_str(), argv);
  std::fprintf(stderr, "%s: %s cannot be started: %s\n", name.c_str(), program.c_str(), std::strerror(errno));
  return 2;
}
