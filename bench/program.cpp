#include "program.hpp"

#include <functional>
#include <string>

#include "cli/cli.hpp"
#include "cli/run_main.hpp"
#include "commands.hpp"
#include "commands/synth/synth_command.hpp"
#include "shard/version.hpp"

namespace shard::bench {

int run_program(int argc, char** argv) {
  return cli::run_main("shardbench", [&] {
    std::string command_line = "shardbench";
    for (int k = 1; k < argc; ++k) command_line.append(" ").append(argv[k]);

    CLI::App app{R"(
      Measure conversion, loading, decoding, storage and hardware, each beside the limit of this machine)",
                 "shardbench"};
    app.set_version_flag("--version", SHARD_VERSION_STRING);
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();
    app.footer(R"(
      Exit codes:
      - 0: everything was measured.
      - 1: a part was left out, or a result was wrong. The output says which and why.
      - 2: the usage was wrong, or something cannot be read or written.
      - 130: interrupted. What was measured until then is in the file of --json.

      The documentation is docs/shardbench.md.)");
    std::function<int()> command;
    add_synth(app, command);
    const Subcommands subcommands{app, command, command_line};
    for (const auto add : {add_convert, add_load, add_tiers, add_decode, add_pipeline, add_device, add_write,
                           add_transform, add_upload, add_memory, add_matmul, add_report})
      add(subcommands);
    if (const auto code = cli::parse_arguments(app, argc, argv)) return *code;
    return command();
  });
}

}  // namespace shard::bench
