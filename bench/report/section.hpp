// Turns the JSON of a subcommand into a section. The JSON may be of another version, or incomplete: what is
// missing is left out, and is never an error.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/stats.hpp"
#include "report/page.hpp"

namespace shard::bench {

using ReportJson = nlohmann::ordered_json;

const ReportJson& member(const ReportJson& json, const char* name);  // null: not there
double number(const ReportJson& json, const char* name);             // NaN: not there
std::string word(const ReportJson& json, const char* name);          // empty: not there
bool yes(const ReportJson& json, const char* name);

// "12,345", "123", "12.3", "0.0123"; whole numbers without a point; "-" where it is not known.
std::string people(double value);
std::string percent(double share);
std::string gbs(double bytes_per_second);  // GB/s
std::string bytes_text(double bytes);
std::string joined(const std::vector<std::string>& list, const char* between);
// The same of a member.
inline std::string people(const ReportJson& json, const char* name) { return people(number(json, name)); }
inline std::string percent(const ReportJson& json, const char* name) { return percent(number(json, name)); }
inline std::string gbs(const ReportJson& json, const char* name) { return gbs(number(json, name)); }
inline std::string bytes_text(const ReportJson& json, const char* name) {
  return bytes_text(number(json, name));
}

// Null: an array of numbers.
Stats range_of(const ReportJson& samples, const char* field = nullptr);
// A share of a limit above this is explained in a note.
inline constexpr double kBeyondLimit = 1.1;
inline constexpr const char* kWhyBeyondLimit =
    "More than 100 % of a limit: other programs ran while it was measured, or the samples fit the "
    "processor's caches; "
    "take a quiet machine or a larger data set.";
std::string device_of(const ReportJson& json);  // "the host", "NVIDIA H200"

// The section of a report: its command, its problems, what `fill` adds, and a note about unsteady samples.
PageSection section_of(const std::string& id, const std::string& title, const ReportJson& json,
                       void (*fill)(PageSection&, const ReportJson&));

}  // namespace shard::bench
