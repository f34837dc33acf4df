// The rows of a JSON report as CSV (RFC 4180, a line feed after each line).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace shard::bench {

// A line for each object in the report's arrays "rows", "cases", "batches" and "filesystems". If there is no
// such object, one line for the report itself. Columns are named after the fields, {"a": {"b": 1}} as a.b, in
// the order of their first appearance. A cell is empty if the row does not have the field, or if it is null
// or NaN. Arrays, such as samples, are left out.
std::string to_csv(const nlohmann::ordered_json& report);

}  // namespace shard::bench
