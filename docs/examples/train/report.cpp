#include "report.hpp"

#include <cstdio>
#include <string>

namespace train {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

void Report::begin_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  line_ = all_ = {};
  totals_ = backend_.totals();
  std::printf("%5s %6s %9s %9s %9s %9s %8s %9s %10s\n", "epoch", "batch", "Load", "Transfer", "Train",
              "Total", "loss", "accuracy", "samples/s");
}

void Report::asked() { asked_ = Clock::now(); }

void Report::loaded() { line_.load_ms += ms_since(asked_); }

void Report::done(std::uint64_t batch_index) {
  line_.total_ms += ms_since(asked_);
  line_.batches += 1;
  if ((batch_index + 1) % print_every_ != 0) return;
  const Totals totals = collect();
  print(std::to_string(batch_index).c_str(), line_, totals);
  line_ = {};
}

Totals Report::collect() {
  const Clock::time_point begin = Clock::now();
  const std::vector<double> marks = backend_.take_marks_ms();
  const Totals now = backend_.totals();
  line_.total_ms += ms_since(begin);
  for (std::size_t i = 0; i + 2 < marks.size(); i += 3) {
    line_.transfer_ms += marks[i + 1] - marks[i];
    line_.train_ms += marks[i + 2] - marks[i + 1];
  }
  const Totals added{now.loss - totals_.loss, now.correct - totals_.correct, now.samples - totals_.samples};
  totals_ = now;
  line_.samples = added.samples;
  all_.load_ms += line_.load_ms;
  all_.transfer_ms += line_.transfer_ms;
  all_.train_ms += line_.train_ms;
  all_.total_ms += line_.total_ms;
  all_.batches += line_.batches;
  all_.samples += line_.samples;
  return added;
}

void Report::end_epoch() {
  collect();
  print("all", all_, totals_);
}

void Report::print(const char* batch, const Sums& sums, const Totals& totals) const {
  std::printf("%5llu %6s %9.3f %9.3f %9.3f %9.3f %8.4f %8.1f%% %10.0f\n",
              static_cast<unsigned long long>(epoch_), batch, share(sums.load_ms, sums.batches),
              share(sums.transfer_ms, sums.batches), share(sums.train_ms, sums.batches),
              share(sums.total_ms, sums.batches), share(totals.loss, totals.samples),
              100 * share(totals.correct, totals.samples), 1000 * share(sums.samples, sums.total_ms));
  std::fflush(stdout);
}

void Report::print_stats(const shard::LoaderStats& stats) {
  std::printf("loader: transport %s (%s)\n", std::string(shard::to_string(stats.transport)).c_str(),
              stats.reason.c_str());
  std::printf(
      "loader: %llu samples, %.1f MB; %.3f s waiting for storage, %.3f s for the consumer; the consumer "
      "waited "
      "%.3f s\n",
      static_cast<unsigned long long>(stats.samples), static_cast<double>(stats.bytes) * 1e-6,
      stats.storage_seconds, stats.consumer_seconds, stats.starved_seconds);
}

}  // namespace train
