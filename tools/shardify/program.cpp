// Arguments, signals, progress; the work is in shard::convert.
#include "shardify/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/pace.hpp"
#include "cli/progress.hpp"
#include "cli/run_main.hpp"
#include "cli/text.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/estimate.hpp"
#include "shard/convert/follow.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shardify/arguments.hpp"
#include "shardify/report.hpp"

namespace {

namespace convert = shard::convert;
using shard::cli::human_bytes;
using shard::cli::human_count;
using shard::cli::human_duration;
using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kPatience = std::chrono::milliseconds(700);  // for a clean stop after Ctrl-C
// For other processes of which nothing is seen: no shard takes that long.
constexpr auto kPatienceForOthers = std::chrono::minutes(30);

std::atomic<bool> g_cancel{false};
extern "C" void on_signal(int) { g_cancel.store(true); }

double seconds_now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// The speeds that the progress line shows, measured from the first progress on.
struct Paces {
  shard::cli::Pace images;
  shard::cli::Pace read;
  shard::cli::Pace stored;
};

Paces start_paces(const convert::Counters& c) {
  const double now = seconds_now();
  return {{now, c.resumed + c.stored + c.rejected}, {now, c.bytes_read}, {now, c.bytes_stored}};
}

// The time that is left comes first, because a narrow terminal cuts off the end.
// With --claim, the shards that others finish count too.
std::string progress_text(const convert::Counters& c, const Paces& paces, bool claim) {
  const std::uint64_t own = c.stored + c.rejected;
  const std::uint64_t done = c.resumed + own;
  const double now = seconds_now();
  const std::optional<double> rate = paces.images.rate(now, done);
  const auto bytes_rate = [&](const shard::cli::Pace& pace, std::uint64_t bytes) {
    return human_bytes(static_cast<std::uint64_t>(pace.rate(now, bytes).value_or(0)));
  };
  std::string text;
  if (rate && *rate > 0)
    text =
        human_duration(static_cast<double>(c.planned - std::min(done, c.planned.load())) / *rate) + " left, ";
  text += fmt::format("{} / {} images", human_count(done), human_count(c.planned));
  if (claim) text += fmt::format(", {} by this process", human_count(own));
  if (c.rejected > 0) text += fmt::format(", {} rejected", human_count(c.rejected));
  if (rate && *rate > 0)
    text += fmt::format(", {:.0f} images/s, read {}/s, write {}/s", *rate,
                        bytes_rate(paces.read, c.bytes_read), bytes_rate(paces.stored, c.bytes_stored));
  return text;
}

std::string how_to_go_on(const convert::Counters& c, bool follow) {
  if (follow) return "interrupted; finished shards are kept, and the same command goes on";
  return fmt::format(
      "interrupted after {} of {} images; run the same command again to continue (finished shards are kept)",
      human_count(c.resumed + c.stored + c.rejected), human_count(c.planned));
}

// A lost line does not end the run.
void print_line(const std::string& line) { std::fwrite(line.data(), 1, line.size(), stderr); }
void print_warning(const std::string& text) {
  print_line(fmt::format("shardify: warning: {}\n", shard::cli::with_flags(text)));
}

convert::Summary run_engine(const shard::shardify::Arguments& arguments, convert::Counters& counters,
                            convert::Listing& found) {
  convert::Hooks hooks{&counters, &g_cancel};
  hooks.planned = [&found](const convert::Listing& listing) {
    found = listing;
    for (const std::string& text : listing.warnings) print_warning(text);
  };
  if (!arguments.follow) return convert::run(arguments.options, hooks);
  convert::FollowOptions how;
  how.until = arguments.until;
  how.warn = print_warning;
  how.grown = [&](const convert::Summary& whole) {
    if (arguments.quiet) return;
    print_line(fmt::format("shardify: {} has {} samples in {} shards now\n",
                           shard::quoted(arguments.options.out), human_count(whole.samples), whole.shards));
  };
  return convert::follow(arguments.options, how, hooks);
}

// Runs the conversion on another thread, so that this one can show progress and stop within a second after a
// signal.
convert::Summary run_watched(const shard::shardify::Arguments& arguments, convert::Listing& found) {
  convert::Counters counters;
  shard::cli::Progress progress(arguments.quiet ? shard::cli::ProgressMode::quiet
                                                : shard::cli::ProgressMode::automatic);
  std::mutex mutex;
  std::condition_variable finished;
  bool over = false;
  std::optional<convert::Summary> summary;
  std::exception_ptr error;

  // Threads inherit the mask. So signals come to this thread, and do not interrupt a write or fsync of the
  // engine.
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  std::jthread engine([&] {
    try {
      summary = run_engine(arguments, counters, found);
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(mutex);
    over = true;
    finished.notify_all();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  std::optional<Paces> paces;
  std::optional<Clock::time_point> cancelled;
  {
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, kTick, [&] { return over; })) {
      if (!paces && counters.stored + counters.rejected > 0) paces = start_paces(counters);
      if (paces && progress.due()) progress.update(progress_text(counters, *paces, arguments.options.claim));
      if (g_cancel && !cancelled) cancelled = Clock::now();
      if (cancelled && Clock::now() - *cancelled > kPatience) {
        // A thread is still in a system call or in one huge image. The process ends here as by a kill:
        // nothing partial is visible.
        progress.finish();
        fmt::print(stderr, "shardify: {}\n", how_to_go_on(counters, arguments.follow));
        ::_exit(shard::cli::kExitInterrupted);
      }
    }
  }
  engine.join();
  progress.finish();
  if (error) {
    try {
      std::rethrow_exception(error);
    } catch (const shard::Error& e) {
      if (e.code() != shard::ErrorCode::cancelled) throw;
      throw shard::Error(shard::ErrorCode::cancelled, how_to_go_on(counters, arguments.follow));
    }
  }
  return *summary;
}

// The conversion has finished. If its summary cannot be printed, the error must say that the data are there.
void print_result(const shard::shardify::Arguments& arguments, const convert::Summary& summary,
                  const convert::Listing& found, double seconds) {
  try {
    shard::shardify::print_summary(arguments.options, summary, found, seconds, arguments.json);
    shard::cli::flush_out();
  } catch (const shard::cli::BrokenPipe&) {
    throw;
  } catch (const shard::Error& error) {
    throw shard::Error(error.code(), fmt::format("{}, but its summary could not be printed: {}",
                                                 summary.complete ? "the data set is complete"
                                                                  : "the shards of this process are finished",
                                                 error.what()));
  }
}

// mpirun and torchrun end all processes as soon as one returns an exit code other than 0. So this process
// must not return 3 while others are working: it waits until the data set is complete. Returns false if
// nothing changed in OUT for `patience`: then the others must have ended.
bool wait_for_others(const std::filesystem::path& out, std::chrono::seconds patience) {
  std::error_code error;
  auto seen = std::filesystem::last_write_time(out, error);
  auto since = Clock::now();
  while (!std::filesystem::exists(out / shard::kDatasetFile, error)) {
    if (g_cancel)
      throw shard::Error(shard::ErrorCode::cancelled, "interrupted while other processes were working");
    const auto now = std::filesystem::last_write_time(out, error);
    if (now != seen) {
      seen = now;
      since = Clock::now();
    }
    if (Clock::now() - since > patience) return false;
    std::this_thread::sleep_for(kTick);
  }
  return true;
}

// Replaces the figures of this process by those of the data set, which another process has completed.
void take_completed(const std::filesystem::path& out, convert::Summary& summary) {
  const convert::Summary whole = convert::summary_of(shard::Dataset::open(out).info());
  summary.complete = true;
  summary.inputs = whole.inputs;
  summary.samples = whole.samples;
  summary.rejects = whole.rejects;
  summary.shards = whole.shards;
  summary.size_bytes = whole.size_bytes;
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends at once
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int run(int argc, char** argv) {
  return shard::cli::run_main("shardify", [&]() -> int {
    shard::shardify::Arguments arguments;
    if (auto code = shard::shardify::parse(argc, argv, arguments)) return *code;
    handle_signals();
    if (arguments.options.world_size > 1)
      fmt::print(stderr, "shardify: rank {} of {} ({})\n", arguments.options.rank,
                 arguments.options.world_size, arguments.rank_source);
    convert::Listing found;
    if (arguments.dry_run) {
      convert::Hooks hooks{nullptr, &g_cancel};
      hooks.planned = [&found](const convert::Listing& listing) { found = listing; };
      const convert::Estimate estimate = convert::estimate(arguments.options, hooks);
      arguments.options.preprocess = found.preprocess;
      shard::shardify::print_estimate(arguments.options, estimate, found, arguments.json);
      return shard::cli::kExitOk;
    }
    const shard::Stopwatch watch;
    convert::Summary summary = run_watched(arguments, found);
    arguments.options.preprocess = found.preprocess;  // what the images decided
    const bool others_ended = !summary.complete && arguments.wait_for_others &&
                              wait_for_others(arguments.options.out, kPatienceForOthers);
    if (others_ended) take_completed(arguments.options.out, summary);
    const double seconds = watch.seconds();
    if (arguments.json || !arguments.quiet)
      print_result(arguments, summary, found, seconds);
    else
      for (const std::string& text : shard::shardify::warnings_of(summary))
        print_line(fmt::format("shardify: warning: {}\n", text));
    if (!summary.complete) return shard::cli::kExitPartial;
    return summary.rejects > 0 ? 1 : shard::cli::kExitOk;
  });
}

}  // namespace

int shard::shardify::run_program(int argc, char** argv) { return run(argc, argv); }
