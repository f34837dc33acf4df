// synth_photos: `shardbench synth` alone, for tools/quickstart. Not installed.
#include <CLI/CLI.hpp>

#include <functional>

#include "cli/cli.hpp"
#include "cli/run_main.hpp"
#include "commands/synth/synth_command.hpp"

int main(int argc, char** argv) {
  return shard::cli::run_main("synth_photos", [&] {
    CLI::App app{"Make sample data for shardify", "synth_photos"};
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();
    std::function<int()> command;
    shard::bench::add_synth(app, command);
    if (const auto code = shard::cli::parse_arguments(app, argc, argv)) return *code;
    return command();
  });
}
