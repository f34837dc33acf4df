#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "commands/synth/synth_command.hpp"
#include "data/synth.hpp"
#include "harness/interrupt.hpp"

namespace shard::bench {
namespace {

int run(const SynthOptions& options, bool quiet) {
  const InterruptGuard interrupt;
  cli::Progress progress(quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  const SynthSummary summary = synthesize(options, [&](const SynthSummary& now) {
    if (progress.due()) {
      progress.update(fmt::format("{} of {} pictures, {:.0f}/s", now.images, options.count,
                                  static_cast<double>(now.images) / now.seconds));
    }
    return !interrupted();
  });
  progress.finish();
  if (quiet) return 0;
  const auto images = static_cast<double>(summary.images);
  cli::out("{}: {} pictures in {} classes, {}\n", quoted(options.folder), cli::human_count(summary.images),
           std::min<std::uint64_t>(options.classes, options.count), cli::human_bytes(summary.bytes));
  cli::out("mean {:.1f} kB, {:.2f} bits per pixel, {:.0f} pixels; {:.0f} pictures/s\n",
           static_cast<double>(summary.bytes) / images / 1e3,
           8.0 * static_cast<double>(summary.bytes) / static_cast<double>(summary.pixels),
           static_cast<double>(summary.pixels) / images, images / summary.seconds);
  return 0;
}

}  // namespace

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
  sub->callback(
      [arguments, &command] { command = [arguments] { return run(arguments->options, arguments->quiet); }; });
}

}  // namespace shard::bench
