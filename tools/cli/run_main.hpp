// run_main: what every program does around its work, so that no failure is silent and none is a crash.
#pragma once

#include <functional>
#include <string_view>

namespace shard::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 2;        // usage, unreadable input, failed output
inline constexpr int kExitPartial = 3;        // this process is done, others that share the work are not
inline constexpr int kExitInterrupted = 130;  // Error(cancelled)
inline constexpr int kExitBrokenPipe =
    141;  // the reader of standard output went away; as a shell reports SIGPIPE

// Ignores SIGPIPE and SIGXFSZ, makes sure that descriptors 0 to 2 are taken (a closed one would be given to
// the next file that is opened), runs `body`, prints what it throws as "program: message" on standard error
// (exit code 2; 130 for cancelled). Then it flushes standard output; if that fails, it prints an error and
// returns 2. When the reader of a pipe has seen enough (`... | head`), ends with 141 and says nothing.
int run_main(std::string_view program, const std::function<int()>& body);

}  // namespace shard::cli
