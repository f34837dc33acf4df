// The command line of shardify, turned into convert::Options.
#pragma once

#include <optional>

#include "convert/options.hpp"

namespace shard::shardify {

struct Arguments {
  convert::Options options;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

// Fills `arguments` from the command line, a --config file and the launcher's environment. Empty: go on; else
// the program ends with this exit code. Errors: invalid_argument naming the option.
std::optional<int> parse(int argc, const char* const* argv, Arguments& arguments);

}  // namespace shard::shardify
