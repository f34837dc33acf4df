// What run_main makes of failures.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "cli/output.hpp"
#include "cli/run_main.hpp"

namespace shard::cli {
namespace {

TEST(RunMain, ReturnsWhatTheBodyReturns) {
  EXPECT_EQ(run_main("prog", [] { return 1; }), 1);
  EXPECT_EQ(run_main("prog", [] { return 0; }), 0);
}

TEST(RunMain, PrintsFailuresWithTheProgramsNameAndReturns2) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_main("prog", []() -> int { throw Error(ErrorCode::corrupt, "x.bin: is bad"); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw std::runtime_error("other"); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw std::bad_alloc(); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw Error(ErrorCode::cancelled, "stopped"); }), 130);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.substr(0, text.find("prog: out of memory")), "prog: x.bin: is bad\nprog: other\n");
}

// Runs `body` with standard output replaced by `path`, in a child: what its exit code is.
int exit_code_with_output(const char* path, bool close_output) {
  const pid_t child = fork();
  if (child == 0) {
    if (close_output) {
      close(STDOUT_FILENO);
    } else {
      const int fd = open(path, O_WRONLY);
      if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) _exit(99);
    }
    _exit(run_main("prog", [] {
      out("{}\n", "text");
      return 0;
    }));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(RunMain, ReportsAFullOrClosedStandardOutput) {
  EXPECT_EQ(exit_code_with_output("/dev/null", false), 0);
  EXPECT_EQ(exit_code_with_output("/dev/full", false), 2);
  EXPECT_EQ(exit_code_with_output("", true), 2);
}

TEST(RunMain, EndsWith141WithoutAWordWhenThePipeIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);  // nobody reads, from the first byte on
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(ends[1], STDOUT_FILENO) < 0) _exit(99);
    close(ends[1]);
    _exit(run_main("prog", [] {
      out("{}\n", "text");
      return 0;
    }));
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, kExitBrokenPipe);
}

}  // namespace
}  // namespace shard::cli
