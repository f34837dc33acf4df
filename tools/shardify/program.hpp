// The program shardify: it parses its arguments and converts what they name.
#pragma once

namespace shard::shardify {

int run_program(int argc, char** argv);  // returns the exit code

}  // namespace shard::shardify
