// shardbench: measures, and makes sample data to measure on. One subcommand a file.
#include <CLI/CLI.hpp>

#include <functional>

#include "commands.hpp"
#include "common/cli.hpp"
#include "common/run_main.hpp"

int main(int argc, char** argv) {
  return shard::cli::run_main("shardbench", [&] {
    CLI::App app{"shardbench: sample data and measurements for shardify and the loader"};
    app.set_version_flag("--version", SHARD_VERSION);
    app.require_subcommand(1);
    std::function<int()> command;
    shard::bench::add_synth(app, command);
    if (const auto code = shard::cli::parse_arguments(app, argc, argv)) return *code;
    return command();
  });
}
