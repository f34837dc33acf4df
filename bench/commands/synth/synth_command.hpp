// `shardbench synth`, which tools/quickstart builds alone: it needs nothing else of shardbench.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace shard::bench {

void add_synth(CLI::App& app, std::function<int()>& command);

}  // namespace shard::bench
