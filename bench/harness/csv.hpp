// The rows of a JSON report as CSV (RFC 4180, a line feed after each line).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace shard::bench {

// A line for each object in the report's arrays "rows", "cases", "batches" and "filesystems"; without any,
// the report itself as one. Columns are named as the fields, {"a": {"b": 1}} as a.b, in the order of their
// first appearance; what a row does not have, or is null or no number, is empty. Arrays, such as samples, are
// left out.
std::string to_csv(const nlohmann::ordered_json& report);

}  // namespace shard::bench
