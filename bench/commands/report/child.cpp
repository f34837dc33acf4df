#include "commands/report/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

// After fork: only what is safe there. A group of its own: Ctrl-C reaches it once, through its parent. SIGINT
// and SIGTERM come in blocked: the parent's handlers would swallow one that is sent before the other program
// runs.
[[noreturn]] void become(char* const* arguments, int nowhere, int errors, pid_t parent,
                         const sigset_t& mask) {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(126);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execv(kSelf, arguments);
  ::_exit(127);
}

[[noreturn]] void refuse(const char* what) {
  throw Error(ErrorCode::resource, fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& arguments, const std::atomic<bool>& cancel,
                   const std::function<void(const std::string&)>& note) {
  std::vector<std::string> words{"shardbench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) refuse("/dev/null cannot be opened");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    ::close(nowhere);
    refuse("no pipe can be made");
  }
  const pid_t parent = ::getpid();
  sigset_t stops;
  sigset_t mask;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGINT);
  ::sigaddset(&stops, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &stops, &mask);
  const pid_t child = ::fork();
  if (child == 0) become(pointers.data(), nowhere, ends[1], parent, mask);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::close(nowhere);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    refuse("no process can be started");
  }

  ChildEnd end;
  std::string line;
  const auto take = [&] {
    if (!line.empty()) note(end.last_line = line);
    line.clear();
  };
  bool told = false;
  for (;;) {
    if (cancel && !told) told = ::kill(child, SIGINT) == 0;
    pollfd ready{ends[0], POLLIN, 0};
    if (::poll(&ready, 1, 100) <= 0) continue;  // EINTR: the flag is looked at again
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      const char c = buffer[static_cast<std::size_t>(i)];
      if (c == '\n')
        take();
      else if (line.size() < 4096)
        line += c;
    }
  }
  take();
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace shard::bench
