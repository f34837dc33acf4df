// Options that several subcommands have. The variables must live until the parser has run.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace shard::bench {

inline void add_repeat_option(CLI::App& app, unsigned& repeat, const char* of = "Samples of each") {
  app.add_option("--repeat", repeat, of)->check(CLI::Range(1, 1000))->capture_default_str();
}

inline void add_seconds_option(CLI::App& app, double& seconds, const char* of = "Of each sample, at least") {
  app.add_option("--seconds", seconds, of)->check(CLI::Range(0.0, 600.0))->capture_default_str();
}

inline void add_json_option(CLI::App& app, std::string& path, const char* what = "Every sample as JSON") {
  app.add_option("--json", path, std::string(what) + ": a file, or - for standard output");
}

}  // namespace shard::bench
