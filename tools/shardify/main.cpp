// shardify: a folder of images to a data set of shards. Arguments, signals, progress; the work is in
// tools/convert.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "common/format.hpp"
#include "common/output.hpp"
#include "common/progress.hpp"
#include "common/run_main.hpp"
#include "convert/convert.hpp"
#include "convert/estimate.hpp"
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

std::atomic<bool> g_cancel{false};
extern "C" void on_signal(int) { g_cancel.store(true); }

std::string progress_text(const convert::Counters& c, double seconds) {
  const std::uint64_t done = c.stored + c.rejected;
  const std::uint64_t todo = c.planned - c.resumed;
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = fmt::format("{} / {} images", human_count(c.resumed + done), human_count(c.planned));
  if (done > 0) {
    text +=
        fmt::format(", {:.0f} images/s, read {}/s, write {}/s, {} left", rate,
                    human_bytes(static_cast<std::uint64_t>(static_cast<double>(c.bytes_read) / seconds)),
                    human_bytes(static_cast<std::uint64_t>(static_cast<double>(c.bytes_stored) / seconds)),
                    human_duration(static_cast<double>(todo - done) / rate));
  }
  if (c.rejected > 0) text += fmt::format(", {} rejected", human_count(c.rejected));
  return text;
}

std::string how_to_go_on(const convert::Counters& c) {
  return fmt::format(
      "interrupted after {} of {} images; run the same command again to go on (finished shards are kept)",
      human_count(c.resumed + c.stored + c.rejected), human_count(c.planned));
}

// Runs the conversion on a thread of its own, so that this one can show progress and keep the promise to stop
// within a second.
convert::Summary run_watched(const shard::shardify::Arguments& arguments) {
  convert::Counters counters;
  shard::cli::Progress progress(arguments.quiet ? shard::cli::ProgressMode::quiet
                                                : shard::cli::ProgressMode::automatic);
  std::mutex mutex;
  std::condition_variable finished;
  bool over = false;
  std::optional<convert::Summary> summary;
  std::exception_ptr error;

  // Threads inherit the mask: signals come to this thread, and no write or fsync of the engine ends early.
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  std::thread engine([&] {
    try {
      summary = convert::run(arguments.options, {&counters, &g_cancel});
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(mutex);
    over = true;
    finished.notify_all();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  std::optional<Clock::time_point> begin;
  std::optional<Clock::time_point> cancelled;
  {
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, kTick, [&] { return over; })) {
      if (!begin && counters.stored + counters.rejected > 0) begin = Clock::now();
      if (begin && progress.due())
        progress.update(
            progress_text(counters, std::chrono::duration<double>(Clock::now() - *begin).count()));
      if (g_cancel && !cancelled) cancelled = Clock::now();
      if (cancelled && Clock::now() - *cancelled > kPatience) {
        // A system call or one huge image holds a thread up. Ending here is what a kill would do: nothing
        // partial is visible.
        progress.finish();
        fmt::print(stderr, "shardify: {}\n", how_to_go_on(counters));
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
      throw shard::Error(shard::ErrorCode::cancelled, how_to_go_on(counters));
    }
  }
  return *summary;
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends at once
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  return shard::cli::run_main("shardify", [&]() -> int {
    shard::shardify::Arguments arguments;
    if (auto code = shard::shardify::parse(argc, argv, arguments)) return *code;
    handle_signals();
    if (arguments.dry_run) {
      shard::shardify::print_estimate(
          arguments.options, convert::estimate(arguments.options, {nullptr, &g_cancel}), arguments.json);
      return shard::cli::kExitOk;
    }
    const auto begin = Clock::now();
    const convert::Summary summary = run_watched(arguments);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (arguments.json || !arguments.quiet)
      shard::shardify::print_summary(arguments.options, summary, seconds, arguments.json);
    return summary.rejects > 0 ? 1 : shard::cli::kExitOk;
  });
}
