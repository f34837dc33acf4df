// join: the shards of several data sets as one data set.
#include "shard/convert/join.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <string>
#include <vector>

#include <memory>
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shard/dataset.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {

int join(const JoinCommandOptions& options) {
  cli::Progress progress(options.quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  convert::JoinOptions what;
  what.parts.assign(options.paths.begin(), options.paths.end());
  what.folder = options.folder;
  what.copy = options.copy;
  what.progress = [&](std::uint64_t done, std::uint64_t shards) {
    if (progress.due()) progress.update(fmt::format("{} of {} shards", done, shards));
  };
  const convert::JoinSummary done = convert::join(what);
  progress.finish();
  if (options.quiet) return kExitOk;
  std::string made;
  const auto add = [&](std::uint64_t count, const char* how) {
    if (count > 0) made += fmt::format("{}{} {}", made.empty() ? "" : ", ", cli::human_count(count), how);
  };
  add(done.linked, "linked");
  add(done.copied, "copied");
  add(done.relabelled, "copied with other labels");
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : done.info.shards) bytes += shard.size_bytes;
  cli::out("{}: {} of {} data sets in {}, {}: {}\n", path_text(options.folder),
           cli::counted(done.info.samples(), "sample"), options.paths.size(),
           cli::counted(done.info.shards.size(), "shard"), cli::human_bytes(bytes),
           done.was_complete ? "already complete"
           : made.empty()    ? "completed"
                             : made);
  // The first data set has its labels; a class that is misspelled is a new one.
  const std::size_t before = Dataset::open(options.paths.front()).info().classes.size();
  const std::vector<std::string> added(done.info.classes.begin() + static_cast<std::ptrdiff_t>(before),
                                       done.info.classes.end());
  if (!added.empty())
    cli::out("classes: {}, of which {} {} not in the first data set: {}\n",
             cli::human_count(done.info.classes.size()), cli::human_count(added.size()),
             added.size() == 1 ? "is" : "are", fmt::join(added, ", "));
  return kExitOk;
}

void add_join(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<JoinCommandOptions>();
  CLI::App* const command = app.add_subcommand("join", R"(
      Put the shards of several data sets together to one data set, by hard link

      Nothing is decoded or compressed again. Shards get other labels where classes need it; these are copied. A
      stopped join continues with the same command.)");
  command->add_option("NEW", options->folder, "The folder to write: new, empty, or of a stopped join")
      ->required();
  command->add_option("PATHS", options->paths, "Folders of data sets, two or more")
      ->required()
      ->expected(2, -1);
  command->add_flag("--copy", options->copy, "Copy all shards instead of making hard links");
  add_quiet(command, options->quiet, "Print nothing");
  runs(command, chosen, [options] { return join(*options); });
}

}  // namespace shard::ctl
