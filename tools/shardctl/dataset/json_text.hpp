// JSON for --json: always UTF-8 (invalid bytes are replaced), with floats in their shortest form.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace shard::ctl {

using Json = nlohmann::ordered_json;

inline std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// 0.485, not 0.48500001430511475.
inline double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

inline Json floats_json(std::span<const float> values) {
  Json json = Json::array();
  for (const float value : values) json.push_back(shortest(value));
  return json;
}

}  // namespace shard::ctl
