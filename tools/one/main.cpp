// The three programs in one (SHARD_ONE_PROGRAM), by the name under which it is started: they link the same
// libraries, which are most of each.
#include <sys/prctl.h>

#include <string_view>

#include "program.hpp"
#include "shardctl/program.hpp"
#include "shardify/program.hpp"

int main(int argc, char** argv) {
  std::string_view name = argc > 0 ? argv[0] : "";
  name.remove_prefix(name.rfind('/') + 1);
  const auto run = name == "shardify"   ? shard::shardify::run_program
                   : name == "shardctl" ? shard::ctl::run_program
                                        : shard::bench::run_program;
  if (run != shard::bench::run_program) ::prctl(PR_SET_NAME, argv[0] + (name.data() - argv[0]));  // for ps
  return run(argc, argv);
}
