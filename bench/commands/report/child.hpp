// Runs this program as a child process, for one subcommand of a report.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace shard::bench {

struct ChildEnd {
  int exit_code = 0;      // 128 + N: ended by signal N
  std::string last_line;  // of its standard error
};

// Runs it and waits for its end. Its standard output is dropped; `note` gets the lines of its standard error.
// When `cancel` is set, the child gets one SIGINT, so that it removes its temporary files. It does not
// outlive this process. Errors: resource.
ChildEnd run_child(const std::vector<std::string>& arguments, const std::atomic<bool>& cancel,
                   const std::function<void(const std::string&)>& note);

}  // namespace shard::bench
