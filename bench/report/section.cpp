#include "report/section.hpp"

#include "cli/text.hpp"

namespace shard::bench {

const ReportJson& member(const ReportJson& json, const char* name) {
  static const ReportJson none;
  if (!json.is_object()) return none;
  const auto at = json.find(name);
  return at == json.end() ? none : *at;
}

double number(const ReportJson& json, const char* name) {
  const ReportJson& value = member(json, name);
  return value.is_number() ? value.get<double>() : std::nan("");
}

std::string word(const ReportJson& json, const char* name) {
  const ReportJson& value = member(json, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool yes(const ReportJson& json, const char* name) {
  const ReportJson& value = member(json, name);
  return value.is_boolean() && value.get<bool>();
}

std::string people(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size < 999.5 && value == std::round(value)) return fmt::format("{:.0f}", value);
  if (size >= 999.5 && size < 1e15)
    return (value < 0 ? "-" : "") + cli::human_count(static_cast<std::uint64_t>(std::llround(size)));
  const int digits = std::max(0, 2 - static_cast<int>(std::floor(std::log10(size))));
  return digits > 6 ? fmt::format("{:.1e}", value) : fmt::format("{:.{}f}", value, digits);
}

std::string percent(double share) { return std::isfinite(share) ? people(100 * share) + "\u00a0%" : "-"; }
std::string gbs(double bytes_per_second) { return people(bytes_per_second / 1e9); }

std::string bytes_text(double bytes) {
  return bytes >= 0 && bytes < 1.8e19 ? cli::human_bytes(static_cast<std::uint64_t>(bytes)) : "-";
}

std::string joined(const std::vector<std::string>& list, const char* between) {
  return fmt::format("{}", fmt::join(list, between));
}

Stats range_of(const ReportJson& samples, const char* field) {
  std::vector<double> values;
  for (const ReportJson& sample : samples) {
    const double value = field != nullptr     ? number(sample, field)
                         : sample.is_number() ? sample.get<double>()
                                              : std::nan("");
    if (std::isfinite(value)) values.push_back(value);
  }
  return values.empty() ? Stats{} : summarize(values);
}

std::string device_of(const ReportJson& json) {
  const std::string name = word(json, "device");
  return name == "host" ? "the host" : name;
}

PageSection section_of(const std::string& id, const std::string& title, const ReportJson& json,
                       void (*fill)(PageSection&, const ReportJson&)) {
  PageSection section;
  section.id = id;
  section.title = title;
  section.command = word(json, "command");
  const ReportJson& complete = member(json, "complete");
  if (complete.is_boolean() && !complete.get<bool>())
    section.problems.emplace_back("The run ended early: only what was measured until then is here.");
  fill(section, json);
  if (!section.unsteady.empty())
    section.notes.push_back(
        fmt::format("Not safe to compare: the samples of these differ by more than {:.0f} % of their median. "
                    "End other programs, or take more or longer samples: {}.",
                    100 * kSpreadBound, joined(section.unsteady, "; ")));
  for (const ReportJson& problem : member(json, "problems"))
    if (problem.is_string()) section.problems.push_back(problem.get<std::string>());
  return section;
}

}  // namespace shard::bench
