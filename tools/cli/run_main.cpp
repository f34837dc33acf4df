#include "cli/run_main.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "shard/error.hpp"

namespace shard::cli {
namespace {

void complain(std::string_view program, std::string_view message) {
  std::fflush(stderr);
  std::string line = fmt::format("{}: {}\n", program, message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// A closed standard output becomes a read-only /dev/null: writes to it fail (EBADF) and are reported.
void occupy_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) {
      const int opened = open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);  // the lowest free number: fd
      if (opened > 2) close(opened);
    }
  }
}

}  // namespace

int run_main(std::string_view program, const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  occupy_standard_descriptors();
  int code = kExitFailure;
  try {
    code = body();
    flush_out();
    return code;
  } catch (const BrokenPipe&) {
    return kExitBrokenPipe;  // what is left in the buffer has no reader
  } catch (const Error& error) {
    complain(program, with_flags(error.what()));
    code = error.code() == ErrorCode::cancelled ? kExitInterrupted : kExitFailure;
  } catch (const std::bad_alloc&) {
    complain(program, "out of memory: free some, or use fewer --jobs");
    code = kExitFailure;
  } catch (const std::exception& error) {
    complain(program, error.what());
    code = kExitFailure;
  }
  std::fflush(stdout);  // what was printed before the failure; its loss changes nothing any more
  return code;
}

}  // namespace shard::cli
