// The subcommands of shardbench: each adds itself to the parser and sets `command` when it was chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace shard::bench {

void add_synth(CLI::App& app, std::function<int()>& command);

}  // namespace shard::bench
