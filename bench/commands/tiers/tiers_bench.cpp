#include "commands/tiers/tiers_bench.hpp"

#include <algorithm>

#include "base/cpu_count.hpp"
#include "harness/stats.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

double median_of(const TierRow& row, double TierSample::*field) {
  if (row.samples.empty()) return 0;
  std::vector<double> values;
  for (const TierSample& sample : row.samples) values.push_back(sample.*field);
  return summarize(values).median;
}

}  // namespace

std::string_view to_string(TierCache cache) noexcept {
  return cache == TierCache::cold ? "cold" : cache == TierCache::warm ? "warm" : "around";
}

double rate_of(const TierRow& row) { return median_of(row, &TierSample::samples_per_second); }
double limit_of(const TierRow& row) { return median_of(row, &TierSample::limit_samples_per_second); }
double cores_of(const TierRow& row) { return median_of(row, &TierSample::cores); }

const TierRow* rival_of(const TierRow& row, const std::vector<TierRow>& rows) {
  // What goes around the page cache is as cold as it gets; where nothing is cold (memory), the warm one.
  const TierRow* warm = nullptr;
  for (const TierRow& other : rows) {
    if (!other.decodes || other.tier != row.tier || other.samples.empty() || !other.problem.empty()) continue;
    if (other.cache == row.cache || (row.cache == TierCache::around && other.cache == TierCache::cold))
      return &other;
    if (other.cache == TierCache::warm) warm = &other;
  }
  return row.cache == TierCache::around ? warm : nullptr;
}

double speed_up(const TierRow& row, const std::vector<TierRow>& rows) {
  const TierRow* const rival = rival_of(row, rows);
  const double rate = rival == nullptr ? 0 : rate_of(*rival);
  return rate > 0 ? rate_of(row) / rate : 0;
}

unsigned TierOptions::jobs() const { return threads != 0 ? threads : cpu_count(); }

void run_tasks(std::vector<TierTask>& tasks, unsigned repeat, const std::atomic<bool>& cancel,
               const std::function<void(unsigned repeats)>& done) {
  const auto attempt = [&](TierRow& row, const auto& body) {
    if (cancel) throw Error(ErrorCode::cancelled, "stopped; what was made has been removed");
    if (!row.problem.empty()) return;
    try {
      body();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      row.problem = error.what();
    } catch (const std::exception& error) {  // of the filesystem
      row.problem = error.what();
    }
  };
  for (TierTask& task : tasks) attempt(task.row, [&] { task.verify(); });
  done(0);
  for (unsigned k = 0; k < repeat; ++k) {
    for (TierTask& task : tasks)
      attempt(task.row, [&] { task.row.samples.push_back(task.measure(task.row.limit_is)); });
    done(k + 1);
  }
}

double break_even(double decode_rate, double stored_bytes, double image_bytes) noexcept {
  return stored_bytes <= image_bytes ? 0 : decode_rate * stored_bytes;
}

}  // namespace shard::bench
