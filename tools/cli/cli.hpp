// Arguments: CLI11 with the exit codes of our programs.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>

namespace shard::cli {

// Parses. Empty: go on. Otherwise the program ends with this exit code: 0 after --help or --version (printed
// on standard output), 2 after a usage error (printed on standard error with what to do).
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv);

}  // namespace shard::cli
