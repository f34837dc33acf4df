// What a report's page reads out of JSON that may lack anything, and numbers as people read them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"

namespace shard::bench {

using ReportJson = nlohmann::ordered_json;

// The member, or null.
inline const ReportJson& member(const ReportJson& json, const char* name) {
  static const ReportJson none;
  if (!json.is_object()) return none;
  const auto at = json.find(name);
  return at == json.end() ? none : *at;
}

inline double number(const ReportJson& json, const char* name) {  // NaN: not there
  const ReportJson& value = member(json, name);
  return value.is_number() ? value.get<double>() : std::nan("");
}

inline std::string word(const ReportJson& json, const char* name) {  // empty: not there
  const ReportJson& value = member(json, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline bool yes(const ReportJson& json, const char* name) {
  const ReportJson& value = member(json, name);
  return value.is_boolean() && value.get<bool>();
}

// "12,345", "123", "12.3", "0.0123"; whole numbers without a point; "-" where it is not known.
inline std::string people(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size < 999.5 && value == std::round(value)) return fmt::format("{:.0f}", value);
  if (size >= 999.5 && size < 1e15)
    return (value < 0 ? "-" : "") + cli::human_count(static_cast<std::uint64_t>(std::llround(size)));
  const int digits = std::max(0, 2 - static_cast<int>(std::floor(std::log10(size))));
  return digits > 6 ? fmt::format("{:.1e}", value) : fmt::format("{:.{}f}", value, digits);
}

inline std::string percent(double share) {
  return std::isfinite(share) ? people(100 * share) + "\u00a0%" : "-";
}

inline std::string bytes_text(double bytes) {
  return bytes >= 0 && bytes < 1.8e19 ? cli::human_bytes(static_cast<std::uint64_t>(bytes)) : "-";
}

}  // namespace shard::bench
