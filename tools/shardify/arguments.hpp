// The command line of shardify, turned into convert::Options.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "shard/convert/options.hpp"

namespace shard::shardify {

struct Arguments {
  convert::Options options;
  bool dry_run = false;
  // The folder still grows, until this file exists. Empty: until a signal.
  bool follow = false;
  std::filesystem::path until;
  bool json = false;
  bool quiet = false;
  // Where rank and world size come from: a line of standard error says so.
  std::string rank_source;
  // The launcher ends all processes as soon as one returns an exit code other than 0, so each waits until all
  // have finished.
  bool wait_for_others = false;
};

// Fills `arguments` from the command line, a --config file and the launcher's environment. Empty: continue.
// Else the program ends with this exit code. Errors: invalid_argument naming the option.
std::optional<int> parse(int argc, const char* const* argv, Arguments& arguments);

}  // namespace shard::shardify
