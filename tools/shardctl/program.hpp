// The program shardctl: it parses its arguments and runs the subcommand that they name.
#pragma once

namespace shard::ctl {

int run_program(int argc, char** argv);  // returns the exit code

}  // namespace shard::ctl
