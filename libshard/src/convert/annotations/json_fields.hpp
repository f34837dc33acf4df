// Members of a JSON object as fields of a table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"

namespace shard::convert {

struct JsonField {
  // Nothing: the object has no such member, or it is null or an object.
  std::optional<std::string> text;
  // Not empty: what the member says cannot be told, and why.
  std::string problem;
};

// The members that are named like columns: text as it is, and numbers with spaces between them. Numbers may
// stand in lists of any depth, whose ends must not lie inside rows: [[1, 2, 3], [4]] is no two rows of two.
// Throws corrupt if it is not JSON.
std::vector<JsonField> json_fields(std::string_view json, const std::vector<ColumnSpec>& columns);

}  // namespace shard::convert
