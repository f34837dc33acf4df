#include <algorithm>
#include <set>

#include "report/section.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

// Of one case: of the product alone, and with the copies there and back.
double alone(const ReportJson& one) {
  return 1 / range_of(member(one, "samples"), "flops_per_second").median;
}
double whole(const ReportJson& one) { return number(one, "whole_seconds"); }

// The smallest measured size from which on every one is faster on the GPU; 0: none.
double pays_from(const ReportJson& cases, const std::string& gpu, double (*seconds)(const ReportJson&)) {
  std::set<double, std::greater<>> sizes;
  for (const ReportJson& one : cases) sizes.insert(number(one, "size"));
  double from = 0;
  for (const double size : sizes) {
    double host = 0;
    double device = 0;
    for (const ReportJson& one : cases) {
      if (number(one, "size") != size || member(one, "samples").empty()) continue;
      if (!yes(one, "on_gpu")) host = seconds(one);
      if (word(one, "name") == gpu) device = seconds(one);
    }
    if (host == 0 || device == 0 || !(device < host)) break;
    from = size;
  }
  return from;
}

void add_verdicts(PageSection& section, const ReportJson& json) {
  const ReportJson& cases = member(json, "cases");
  std::set<std::string> names;
  for (const ReportJson& one : cases)
    if (yes(one, "on_gpu")) names.insert(word(one, "name"));
  const auto from = [](double size) {
    return size == 0 ? std::string("at none of these sizes") : fmt::format("from size {} on", people(size));
  };
  for (const std::string& name : names)
    section.notes.push_back(
        fmt::format("{} is faster than the CPU {} if the factors are there already, {} with the copies to "
                    "and from the GPU.",
                    name, from(pays_from(cases, name, alone)), from(pays_from(cases, name, whole))));
  const std::string absent = word(json, "gpu_absent");
  if (!absent.empty()) section.notes.push_back("The GPU was left out: " + absent);
}

void fill_matmul(PageSection& section, const ReportJson& json) {
  PageTable table{"Products of square matrices",
                  {"on", "size", "GFLOP/s", "limit", "of the limit", "upload, ms", "product, ms",
                   "download, ms", "in all, ms", "error", "at most"}};
  PageChart chart{"Each product, and its limit", "GFLOP/s"};
  for (const ReportJson& one : member(json, "cases")) {
    const std::string size = people(one, "size");
    const std::string name = word(one, "name");
    const Stats rate = range_of(member(one, "samples"), "flops_per_second");
    if (!rate.known()) {
      table.leave_out({name, size}, word(one, "problem"));
      continue;
    }
    const double limit = number(one, "limit_flops_per_second");
    const bool gpu = yes(one, "on_gpu");
    const auto ms = [&](const char* field) {
      return people(1e3 * range_of(member(one, "samples"), field).median);
    };
    table.add({name, size, people(rate.median / 1e9), limit > 0 ? people(limit / 1e9) : "not known",
               limit > 0 ? percent(rate.median / limit) : "-", gpu ? ms("upload_seconds") : "-",
               ms("multiply_seconds"), gpu ? ms("download_seconds") : "-", people(1e3 * whole(one)),
               fmt::format("{:.1e}", number(one, "error")),
               fmt::format("{:.1e}", number(one, "error_bound"))});
    if (rate.unsteady()) section.unsteady.push_back(name + " " + size);
    chart.bars.push_back({size + ", " + name, rate.median / 1e9, limit / 1e9, chart.group(name)});
    const std::string note = fmt::format("Limit of {}: {}.", name, word(one, "limit_is"));
    if (std::find(section.notes.begin(), section.notes.end(), note) == section.notes.end())
      section.notes.push_back(note);
  }
  std::vector<std::string> best;
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    double most = 0;
    for (const PageBar& bar : chart.bars)
      if (bar.group == g) most = std::max(most, bar.value);
    best.push_back(chart.groups[g] + " " + people(most));
  }
  if (!best.empty())
    section.says = fmt::format(
        "Highest rates: {} GFLOP/s. Before it was timed, each product was compared with one in double "
        "precision.",
        joined(best, ", "));
  section.charts.push_back(chart);
  section.tables.push_back(table);
  add_verdicts(section, json);
}

}  // namespace

PageSection matmul_section(const ReportJson& json) {
  return section_of("matmul", "Matrix products", json, fill_matmul);
}

}  // namespace shard::bench
