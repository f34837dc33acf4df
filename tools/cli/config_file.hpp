// The file that --config names: lines of NAME = VALUE, as the options are called on the command line.
//
//   # a comment
//   preset = train
//   mean = 0.5,0.5,0.5        lists need no quotes; a value may stand in "..." or '...'
//   fast-decode = true        a flag: true or false
#pragma once

#include <CLI/CLI.hpp>

namespace shard::cli {

// Adds --config to `app`. An unknown option, a value that is missing and a line that is none of these are
// usage errors that name the file and the line. The command line wins over the file.
void add_config_file(CLI::App& app);

}  // namespace shard::cli
