// The JSON of each subcommand as a section of a report's page.
#pragma once

#include <array>
#include <string>

#include "report/page.hpp"
#include "report/values.hpp"

namespace shard::bench {

// In the order of the page; each one's JSON is NAME.json.
inline constexpr std::array<const char*, 10> kReportParts{"device", "convert", "decode", "tiers", "pipeline",
                                                          "load",   "upload",  "memory", "write", "matmul"};

std::string section_title(const std::string& part);
// What is missing in `json` is left out, never an error: it may be of another version, or cut short.
PageSection section_of(const std::string& part, const ReportJson& json);

// One each; section_of() has the rest.
void fill_device(PageSection& section, const ReportJson& json);
void fill_upload(PageSection& section, const ReportJson& json);
void fill_memory(PageSection& section, const ReportJson& json);
void fill_write(PageSection& section, const ReportJson& json);
void fill_matmul(PageSection& section, const ReportJson& json);
void fill_convert(PageSection& section, const ReportJson& json);
void fill_decode(PageSection& section, const ReportJson& json);
void fill_tiers(PageSection& section, const ReportJson& json);
void fill_pipeline(PageSection& section, const ReportJson& json);
void fill_load(PageSection& section, const ReportJson& json);

// Lowest to highest, and the same bound for a warning as in the text reports.
struct Range {
  double lowest = 0, median = 0, highest = 0;
  bool known = false;
  bool unsteady() const;
};
Range range_of(const ReportJson& samples, const char* field = nullptr);  // null: an array of numbers
// A note that these differ by more than the bound; none where `names` is empty.
void note_unsteady(PageSection& section, const std::vector<std::string>& names);

}  // namespace shard::bench
