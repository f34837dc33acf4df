// copy: a whole data set to a folder, or to an object store.
#include "shard/convert/copy.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/system/stopwatch.hpp"
#include "cli/output.hpp"
#include "cli/pace.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/dataset/source.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

using convert::CopyProgress;
using convert::CopySummary;

constexpr auto kTick = std::chrono::milliseconds(100);

std::string progress_text(const CopyProgress& now, const cli::Pace& pace, double seconds) {
  const std::uint64_t done = std::min(now.moved_bytes + now.kept_bytes, now.total_bytes);
  std::string text;
  const auto rate = pace.rate(seconds, now.moved_bytes);
  if (rate && *rate > 0)
    text = cli::human_duration(static_cast<double>(now.total_bytes - done) / *rate) + " left, ";
  text += fmt::format("{} of {}", cli::human_bytes(done), cli::human_bytes(now.total_bytes));
  if (now.kept_bytes > 0) text += fmt::format(", {} were there", cli::human_bytes(now.kept_bytes));
  if (rate && *rate > 0) text += fmt::format(", {}/s", cli::human_bytes(static_cast<std::uint64_t>(*rate)));
  return text;
}

// Copies on another thread, while this one shows how far it is.
CopySummary run_shown(convert::Copy& copy, bool quiet) {
  cli::Progress progress(quiet ? cli::ProgressMode::quiet : cli::ProgressMode::automatic);
  std::mutex mutex;
  std::condition_variable finished;
  bool over = false;
  std::optional<CopySummary> summary;
  std::exception_ptr error;
  std::thread worker([&] {
    try {
      summary = copy.run();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    over = true;
    finished.notify_all();
  });
  const Stopwatch watch;
  const cli::Pace pace{0, 0};
  {
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, kTick, [&] { return over; }))
      if (progress.due()) progress.update(progress_text(copy.progress(), pace, watch.seconds()));
  }
  worker.join();
  progress.finish();
  if (error) std::rethrow_exception(error);
  return std::move(*summary);
}

void print_json(const CopyOptions& options, const CopySummary& done, double seconds) {
  Json files = Json::array();
  for (const std::string& name : done.files) files.push_back(name);
  Json notes = Json::array();
  for (const std::string& note : done.notes) notes.push_back(note);
  const Json json = {{"from", path_text(options.from)},
                     {"to", path_text(options.to)},
                     {"was_complete", done.was_complete},
                     {"samples", done.info.samples()},
                     {"shards", done.info.shards.size()},
                     {"bytes", done.bytes.total_bytes},
                     {"copied_shards", done.copied_shards},
                     {"kept_shards", done.kept_shards},
                     {"moved_bytes", done.bytes.moved_bytes},
                     {"kept_bytes", done.bytes.kept_bytes},
                     {"files", std::move(files)},
                     {"notes", std::move(notes)},
                     {"requests", done.requests},
                     {"retries", done.retries},
                     {"seconds", seconds}};
  cli::write_out(json_text(json, 2) + "\n");
}

}  // namespace

int copy(const CopyOptions& options) {
  const Stopwatch watch;
  const std::unique_ptr<convert::Copy> copy = convert::Copy::open(options.from, options.to);
  const CopySummary done = run_shown(*copy, options.quiet || options.json);
  if (options.json) {
    print_json(options, done, watch.seconds());
  } else if (!options.quiet) {
    cli::out("{}: {} in {}, {}: {}\n", path_text(options.to), cli::counted(done.info.samples(), "sample"),
             cli::counted(done.info.shards.size(), "shard"), cli::human_bytes(done.bytes.total_bytes),
             done.was_complete ? std::string("already complete")
                               : fmt::format("{} copied, {} were there, {} moved in {}", done.copied_shards,
                                             done.kept_shards, cli::human_bytes(done.bytes.moved_bytes),
                                             cli::human_duration(watch.seconds())));
    for (const std::string& note : done.notes) fmt::print(stderr, "shardctl: note: {}\n", note);
  }
  return kExitOk;
}

void add_copy(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<CopyOptions>();
  CLI::App* const command = app.add_subcommand("copy", R"(
      Copy a whole data set to a folder, or from a folder to an object store

      What is there is proven by its digests and not moved again, so a stopped copy goes on with the same command. Another data set is never
      overwritten.)");
  command
      ->add_option("SRC", options->from, "The folder of a data set, or its address: https://, s3://, hf://")
      ->required();
  command
      ->add_option("DST", options->to,
                   "The folder to write, or s3://BUCKET/PREFIX: new, empty, or of a stopped copy")
      ->required();
  add_quiet(command, options->quiet, "Print nothing");
  add_json(command, options->json);
  runs(command, chosen, [options] { return copy(*options); });
}

}  // namespace shard::ctl
