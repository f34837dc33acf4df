#include "commands/synth/synth_run.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "harness/interrupt.hpp"

namespace shard::bench {

int run_synth(const SynthOptions& options, bool quiet) {
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

}  // namespace shard::bench
