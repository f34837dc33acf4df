#include "commands/synth/synth_command.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "commands/synth/synth_run.hpp"

namespace shard::bench {

void add_synth(CLI::App& app, std::function<int()>& command) {
  struct Arguments {
    SynthOptions options;
    bool quiet = false;
  };
  auto arguments = std::make_shared<Arguments>();
  SynthOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("synth", R"(
      Make photo-like JPEGs

      They have 1/f texture, edges, colour and noise, and sizes and bits per pixel as in ImageNet. The same seed gives
      the same files, for every number of --jobs.)");
  sub->add_option("DIR", options.folder, "The folder to make: new, empty, or made by the same command")
      ->required();
  sub->add_option("--count", options.count, "Number of pictures")->check(CLI::Range(1, 10'000'000));
  sub->add_option("--seed", options.seed, "Another seed gives other pictures");
  sub->add_option("--classes", options.classes, "Number of class folders")->check(CLI::Range(1, 100));
  sub->add_option("--jobs", options.jobs, "Threads")->default_str("one per core")->check(CLI::Range(1, 1024));
  sub->add_flag("--quiet", arguments->quiet, "Print errors only");
  sub->callback([arguments, &command] {
    command = [arguments] { return run_synth(arguments->options, arguments->quiet); };
  });
}

}  // namespace shard::bench
