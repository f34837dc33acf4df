// Completion in a shell: a script for bash, zsh or fish that knows the subcommands, options and words of a
// program, made from the same declarations as its help.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace shard::cli {

// `shell`: bash, zsh or fish; anything else throws invalid_argument. `app`: the whole program, with all its
// subcommands.
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace shard::cli
