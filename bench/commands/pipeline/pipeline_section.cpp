#include <algorithm>

#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

constexpr std::size_t kShown = 6;  // batches of each
constexpr const char* kParts[] = {"load_ms", "transfer_ms", "train_ms", "total_ms"};

std::vector<std::string> times_of(const ReportJson& batch) {
  std::vector<std::string> cells;
  for (const char* part : kParts) cells.push_back(fmt::format("{:.2f}", number(batch, part)));
  return cells;
}

ReportJson mean_of(const ReportJson& runs) {
  ReportJson mean;
  for (const char* part : kParts) {
    double sum = 0;
    double count = 0;
    for (const ReportJson& run : runs)
      for (const ReportJson& batch : run) {
        sum += number(batch, part);
        ++count;
      }
    mean[part] = sum / count;
  }
  return mean;
}

void add_batches(PageTable& table, const std::string& name, const ReportJson& runs) {
  const auto row = [&](std::string first, std::string index, const ReportJson& batch) {
    std::vector<std::string> cells{std::move(first), std::move(index)};
    for (std::string& cell : times_of(batch)) cells.push_back(std::move(cell));
    table.add(std::move(cells));
  };
  if (!runs.is_array() || runs.empty() || !runs.back().is_array()) return;
  const ReportJson& last = runs.back();
  const std::size_t shown = std::min(kShown, last.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t index = i * last.size() / shown;
    row(i == 0 ? name : "", std::to_string(index), last[index]);
  }
  row("", "mean", mean_of(runs));
}

bool unsteady(const ReportJson& runs) {
  ReportJson totals = ReportJson::array();
  for (const ReportJson& run : runs) {
    double total = 0;
    for (const ReportJson& batch : run) total += number(batch, "total_ms");
    totals.push_back(total);
  }
  return range_of(totals).unsteady();
}

void fill_pipeline(PageSection& section, const ReportJson& json) {
  const double limit = number(json, "limit_samples_per_second");
  PageTable batches{fmt::format("Batches of {} on {}, {} threads: some of the last run",
                                people(json, "batch_size"), device_of(json), people(json, "threads")),
                    {"pipeline", "batch", "Load ms", "Transfer ms", "Train ms", "Total ms"}};
  PageTable table{
      "What each part contributes",
      {"pipeline", "samples/s", "of the limit", "x the first", "x the one before", "device busy"}};
  PageChart chart{
      "What each part of the pipeline contributes", "samples/s", {"decoding on the fly", "precomputed"}};
  double before = 0;
  for (const ReportJson& one : member(json, "cases")) {
    const std::string name = word(one, "name");
    const double rate = number(one, "samples_per_second");
    if (!(rate > 0) || !word(one, "problem").empty()) {
      table.leave_out({name}, word(one, "problem"));
      continue;
    }
    add_batches(batches, name, member(one, "runs"));
    table.add({name, people(std::round(rate)), percent(rate / limit), people(one, "speed_up"),
               before > 0 ? people(rate / before) : "-", percent(one, "device_busy")});
    before = rate;
    chart.bars.push_back({name, rate, limit, name == "precomputed shards" ? 1U : 0U});
    section.notes.push_back(name + ": " + word(one, "how"));
    if (unsteady(member(one, "runs"))) section.unsteady.push_back(name);
    section.says = fmt::format(
        "With {} the training step gets {} times the samples of the first pipeline; the device is busy {} of "
        "the time.",
        name, people(one, "speed_up"), percent(one, "device_busy"));
  }
  section.charts.push_back(chart);
  section.tables = {batches, table};
  const ReportJson& step = member(json, "step");
  section.notes.push_back(
      fmt::format("Limit: {} samples/s, the training step alone ({} ms per batch: {} products of {}x{}, {}).",
                  people(std::round(limit)), people(step, "ms"), people(step, "times"), people(step, "size"),
                  people(step, "size"), word(step, "arithmetic")));
  if (word(json, "device") == "host")
    section.notes.emplace_back(
        "On the host the step and the decoding share the cores: a step that has to wait for them counts as "
        "busy.");
}

}  // namespace

PageSection pipeline_section(const ReportJson& json) {
  return section_of("pipeline", "What each part of a pipeline contributes", json, fill_pipeline);
}

}  // namespace shard::bench
