#include "cli/output.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "shard/error.hpp"

namespace shard::cli {
namespace {

[[noreturn]] void fail() {
  const int code = errno;
  if (code == EPIPE) throw BrokenPipe(ErrorCode::io, "standard output was closed by its reader");
  throw Error(ErrorCode::io,
              fmt::format("cannot write to standard output: {}; the output is incomplete",
                          code != 0 ? std::generic_category().message(code) : "an earlier write failed"));
}

}  // namespace

void write_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void flush_out() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail();
}

}  // namespace shard::cli
