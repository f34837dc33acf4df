#include "commands/tiers/tiers_bench.hpp"

#include <algorithm>

#include "harness/measure.hpp"
#include "harness/stats.hpp"
#include "shard/error.hpp"

namespace shard::bench {
std::string_view to_string(TierCache cache) noexcept {
  return cache == TierCache::cold ? "cold" : cache == TierCache::warm ? "warm" : "around";
}

double rate_of(const TierRow& row) { return median_of(row.samples, &TierSample::samples_per_second); }
double limit_of(const TierRow& row) { return median_of(row.samples, &TierSample::limit_samples_per_second); }

const TierRow* baseline_of(const TierRow& row, const std::vector<TierRow>& rows) {
  // Reads past the page cache are compared with the cold row or, if the tier has none (memory), with the warm
  // one.
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
  const TierRow* const baseline = baseline_of(row, rows);
  const double rate = baseline == nullptr ? 0 : rate_of(*baseline);
  return rate > 0 ? rate_of(row) / rate : 0;
}

void run_tasks(std::vector<TierTask>& tasks, unsigned repeat, const std::atomic<bool>& cancel,
               const std::function<void(unsigned repeats)>& done) {
  for (TierTask& task : tasks) {
    stop_when(cancel, kStoppedAndRemoved);
    attempt(task.row.problem, task.verify);
  }
  done(0);
  for (unsigned k = 0; k < repeat; ++k) {
    for (TierTask& task : tasks) {
      stop_when(cancel, kStoppedAndRemoved);
      attempt(task.row.problem, [&] { task.row.samples.push_back(task.measure(task.row.limit_is)); });
    }
    done(k + 1);
  }
}

double break_even(double decode_rate, double stored_bytes, double image_bytes) noexcept {
  return stored_bytes <= image_bytes ? 0 : decode_rate * stored_bytes;
}

nlohmann::ordered_json tiers_json(const std::vector<TierRow>& rows) {
  using Json = nlohmann::ordered_json;
  auto list = Json::array();
  for (const TierRow& row : rows) {
    Json entry{{"tier", row.tier},
               {"cache", to_string(row.cache)},
               {"emulated", row.emulated},
               {"dataset", row.dataset},
               {"contender", row.candidate},
               {"decodes", row.decodes},
               {"bytes_per_sample", row.bytes_per_sample}};
    if (!row.problem.empty()) entry["problem"] = row.problem;
    if (row.problem.empty() && !row.samples.empty()) {
      const Stats stats = stats_of(row.samples, &TierSample::samples_per_second);
      const double limit = limit_of(row);
      const double times = speed_up(row, rows);
      entry["samples_per_second"] = stats.median;
      entry["lowest"] = stats.min;
      entry["highest"] = stats.max;
      entry["bytes_per_second"] = stats.median * row.bytes_per_sample;
      entry["limit_samples_per_second"] = limit;
      entry["limit_is"] = row.limit_is;
      entry["share_of_limit"] = limit > 0 ? Json(stats.median / limit) : nullptr;
      entry["cores"] = median_of(row.samples, &TierSample::cores);
      entry["speed_up_over_decoding"] = times > 0 ? Json(times) : nullptr;
    }
    entry["samples"] = Json::array();
    for (const TierSample& sample : row.samples)
      entry["samples"].push_back({{"samples_per_second", sample.samples_per_second},
                                  {"limit_samples_per_second", sample.limit_samples_per_second},
                                  {"cores", sample.cores}});
    list.push_back(entry);
  }
  return list;
}

}  // namespace shard::bench
