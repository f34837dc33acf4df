#include "cli/run_main.hpp"

#include <fcntl.h>
#include <sys/mman.h>
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

// Where hardly anything is left beside the program itself, small allocations fail first, also in functions of
// libraries that cannot report it (destructors of JSON values, directory_iterator with an error_code), and
// the program would abort. Larger ones fail first later on.
void require_memory() {
  constexpr std::size_t kLeastBytes = std::size_t{32} << 20U;
  void* const some = ::mmap(nullptr, kLeastBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (some == MAP_FAILED) throw std::bad_alloc();
  ::munmap(some, kLeastBytes);
}

}  // namespace

int run_main(std::string_view program, const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  occupy_standard_descriptors();
  int code = kExitFailure;
  try {
    require_memory();
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
