#include "report/sections.hpp"

#include <map>

#include "harness/stats.hpp"

namespace shard::bench {

bool Range::unsteady() const { return known && Stats{2, median, lowest, highest}.spread() > kSpreadBound; }

Range range_of(const ReportJson& samples, const char* field) {
  std::vector<double> values;
  for (const ReportJson& sample : samples) {
    const double value = field != nullptr     ? number(sample, field)
                         : sample.is_number() ? sample.get<double>()
                                              : std::nan("");
    if (std::isfinite(value)) values.push_back(value);
  }
  if (values.empty()) return {};
  const Stats stats = summarize(values);
  return {stats.min, stats.median, stats.max, true};
}

void note_unsteady(PageSection& section, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : "; ") + name;
  section.notes.push_back(fmt::format(
      "Not safe to compare: the samples of these differ by more than {:.0f} % of their median. End "
      "other programs, or take more or longer samples: {}.",
      100 * kSpreadBound, list));
}

std::string section_title(const std::string& part) {
  static const std::map<std::string, std::string> titles{{"device", "The machine"},
                                                         {"convert", "Converting images"},
                                                         {"decode", "Decoding on the fly"},
                                                         {"tiers", "What storage gives"},
                                                         {"pipeline", "What each part of a pipeline brings"},
                                                         {"load", "The loader"},
                                                         {"upload", "The link to the device"},
                                                         {"memory", "Memory of the loader"},
                                                         {"write", "Writing shards"},
                                                         {"matmul", "Matrix products"}};
  const auto at = titles.find(part);
  return at == titles.end() ? part : at->second;
}

PageSection section_of(const std::string& part, const ReportJson& json) {
  static const std::map<std::string, void (*)(PageSection&, const ReportJson&)> fill{
      {"device", fill_device}, {"convert", fill_convert},   {"decode", fill_decode},
      {"tiers", fill_tiers},   {"pipeline", fill_pipeline}, {"load", fill_load},
      {"upload", fill_upload}, {"memory", fill_memory},     {"write", fill_write},
      {"matmul", fill_matmul}};
  PageSection section;
  section.id = part;
  section.title = section_title(part);
  section.command = word(json, "command");
  const ReportJson& complete = member(json, "complete");
  if (complete.is_boolean() && !complete.get<bool>())
    section.problems.emplace_back("It ended before its end: only what was measured until then is here.");
  const auto at = fill.find(part);
  if (at != fill.end()) at->second(section, json);
  for (const ReportJson& problem : member(json, "problems"))
    if (problem.is_string()) section.problems.push_back(problem.get<std::string>());
  return section;
}

}  // namespace shard::bench
