#include "commands/tiers/tiers_report.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cli/text.hpp"
#include "harness/stats.hpp"
#include "shard/keys.hpp"

namespace shard::bench {
namespace {

bool measured(const TierRow& row) { return row.problem.empty() && !row.samples.empty(); }

std::string cache_text(const TierRow& row) {
  if (row.emulated) return "emulated";
  return row.cache == TierCache::around ? "O_DIRECT" : std::string(to_string(row.cache));
}

std::string name_of(const TierRow& row) {
  return fmt::format("{}, {}: {}{}", row.tier, cache_text(row), row.contender,
                     row.decodes ? "" : " of " + row.dataset);
}

Stats stats_of(const TierRow& row) {
  std::vector<double> rates;
  for (const TierSample& sample : row.samples) rates.push_back(sample.samples_per_second);
  return summarize(rates);
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
  return text;
}

}  // namespace

std::string tiers_table(const std::vector<TierRow>& rows) {
  using Align = cli::Table::Align;
  cli::Table table({Align::left, Align::left, Align::left, Align::left, Align::right, Align::right,
                    Align::right, Align::right, Align::right, Align::right});
  table.add_row({"tier", "cache", "data", "", "samples/s", "GB/s", "of the limit", "bytes/sample", "cores",
                 "x decode"});
  std::set<std::string> limits;
  for (const TierRow& row : rows) {
    const std::string data = row.decodes ? "JPEG" : row.dataset;
    if (!measured(row)) {
      table.add_row({row.tier, cache_text(row), data, row.contender, "left out"});
      continue;
    }
    const double rate = rate_of(row);
    const double limit = limit_of(row);
    const double times = row.decodes ? 0 : speed_up(row, rows);
    table.add_row({row.tier, cache_text(row), data, row.contender, fmt::format("{:.0f}", rate),
                   fmt::format("{:.3f}", rate * row.bytes_per_sample / 1e9),
                   limit > 0 ? fmt::format("{:.2f}", rate / limit) : "not known",
                   fmt::format("{:.0f}", row.bytes_per_sample), fmt::format("{:.1f}", cores_of(row)),
                   times > 0 ? fmt::format("{:.1f}", times) : "-"});
    if (limit > 0)
      limits.insert(fmt::format("limit of {}, {}: {}\n", row.decodes ? "decoding" : row.contender,
                                cache_text(row), row.limit_is));
  }
  std::string text = table.to_string();
  for (const std::string& limit : limits) text += limit;
  return text;
}

std::string need_text(const std::vector<TierRow>& rows, double need) {
  if (need <= 0) return {};
  std::vector<std::string> places, shards, images, neither;
  for (const TierRow& row : rows) {
    const std::string place = fmt::format("{}, {}", row.tier, cache_text(row));
    if (measured(row) && std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(place);
  }
  for (const std::string& place : places) {
    const TierRow* best = nullptr;
    const TierRow* decoder = nullptr;
    for (const TierRow& row : rows) {
      if (!measured(row) || fmt::format("{}, {}", row.tier, cache_text(row)) != place) continue;
      if (row.decodes) decoder = &row;
      if (!row.decodes && (best == nullptr || rate_of(row) > rate_of(*best))) best = &row;
    }
    const bool by_shards = best != nullptr && rate_of(*best) >= need;
    const bool by_images = decoder != nullptr && rate_of(*decoder) >= need;
    if (by_shards) shards.push_back(fmt::format("{} ({} of {})", place, best->contender, best->dataset));
    if (by_images) images.push_back(place);
    if (!by_shards && !by_images) neither.push_back(place);
  }
  std::string text =
      fmt::format("A GPU that takes {:.0f} samples/s is kept fed with precomputed samples from: {}. ", need,
                  shards.empty() ? "none of these" : list_of(shards));
  text += fmt::format("By decoding on the fly from: {}.", images.empty() ? "none of these" : list_of(images));
  if (!neither.empty()) text += fmt::format(" It starves with both on: {}.", list_of(neither));
  return text + "\n";
}

std::string break_even_text(const std::vector<TierRow>& rows) {
  double decoding = 0;
  double image_bytes = 0;
  for (const TierRow& row : rows) {
    if (!row.decodes || row.emulated || !measured(row) || rate_of(row) <= decoding) continue;
    decoding = rate_of(row);
    image_bytes = row.bytes_per_sample;
  }
  if (decoding <= 0) return "The break-even with decoding is not known: no decoding was measured.\n";
  std::map<std::string, double> sets;
  for (const TierRow& row : rows)
    if (!row.decodes && measured(row)) sets[row.dataset] = row.bytes_per_sample;
  std::string text;
  for (const auto& [name, bytes] : sets) {
    const double from = break_even(decoding, bytes, image_bytes);
    if (from > 0)
      text += fmt::format(
          "{}: a sample takes {:.0f} bytes, an image {:.0f}. This machine decodes {:.0f} images/s: "
          "by "
          "bandwidth alone precomputed samples are faster where storage gives more than {:.0f} MB/s, images "
          "where "
          "it gives less.\n",
          name, bytes, image_bytes, decoding, from / 1e6);
    else
      text += fmt::format(
          "{}: a sample takes {:.0f} bytes, an image {:.0f}: precomputed samples are faster at any "
          "bandwidth.\n",
          name, bytes, image_bytes);
  }
  return text;
}

std::string tiers_notes(const std::vector<TierRow>& rows) {
  std::string text, unsteady;
  for (const TierRow& row : rows) {
    if (!row.problem.empty())
      text += fmt::format("{} was left out: {}\n", name_of(row), row.problem);
    else if (!row.samples.empty() && spread_warning("", stats_of(row)))
      unsteady += (unsteady.empty() ? "" : "; ") + name_of(row);
  }
  if (!unsteady.empty())
    text += fmt::format(
        "warning: these samples differ by more than {:.0f} % of their median: end other programs, or raise "
        "--repeat or --seconds: {}\n",
        100 * kSpreadBound, unsteady);
  return text;
}

nlohmann::ordered_json tiers_json(const std::vector<TierRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const TierRow& row : rows) {
    nlohmann::ordered_json entry{{"tier", row.tier},
                                 {"cache", to_string(row.cache)},
                                 {"emulated", row.emulated},
                                 {"dataset", row.dataset},
                                 {"contender", row.contender},
                                 {"decodes", row.decodes},
                                 {"bytes_per_sample", row.bytes_per_sample}};
    if (!row.problem.empty()) entry["problem"] = row.problem;
    if (measured(row)) {
      const Stats stats = stats_of(row);
      const double limit = limit_of(row);
      entry["samples_per_second"] = stats.median;
      entry["lowest"] = stats.min;
      entry["highest"] = stats.max;
      entry["bytes_per_second"] = stats.median * row.bytes_per_sample;
      entry["limit_samples_per_second"] = limit;
      entry["limit_is"] = row.limit_is;
      entry["share_of_limit"] = limit > 0 ? nlohmann::ordered_json(stats.median / limit) : nullptr;
      entry["cores"] = cores_of(row);
      const double times = speed_up(row, rows);
      entry["speed_up_over_decoding"] = times > 0 ? nlohmann::ordered_json(times) : nullptr;
    }
    entry["samples"] = nlohmann::ordered_json::array();
    for (const TierSample& sample : row.samples)
      entry["samples"].push_back({{"samples_per_second", sample.samples_per_second},
                                  {"limit_samples_per_second", sample.limit_samples_per_second},
                                  {"cores", sample.cores}});
    list.push_back(entry);
  }
  return list;
}

BarChart tiers_chart(const std::vector<TierRow>& rows) {
  BarChart chart{"Samples a second by storage tier", "samples/s", {}, {}};
  for (const TierRow& row : rows)
    if (measured(row))
      add_bar(chart, fmt::format("{}, {}: {}", row.tier, cache_text(row), row.contender), rate_of(row),
              row.decodes ? "decoding on the fly" : row.dataset);
  return chart;
}

}  // namespace shard::bench
