// Arguments: CLI11 with the exit codes of our programs.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>

namespace shard::cli {

// Adds --help, --help-all (help_format.hpp) and --completion (completion.hpp) to what `app` has, and parses.
// Returns nothing if the program goes on, else its exit code: 0 after one of these or --version (printed on
// standard output), 2 after a usage error (printed on standard error with what to do).
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv);

}  // namespace shard::cli
