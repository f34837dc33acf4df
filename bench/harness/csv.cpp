#include "harness/csv.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "shard/keys.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::map<std::string, std::string>;

std::string cell_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const std::string text = value.dump();
  return text == "null" ? "" : text;  // NaN too
}

void flatten(const Json& value, const std::string& name, Cells& cells, std::vector<std::string>& columns) {
  if (value.is_array()) return;
  if (value.is_object()) {
    for (const auto& [key, field] : value.items())
      flatten(field, name.empty() ? key : name + "." + key, cells, columns);
    return;
  }
  if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
  cells[name] = cell_text(value);
}

}  // namespace

std::string to_csv(const Json& report) {
  std::vector<std::string> columns;
  std::vector<Cells> rows;
  const auto add_row = [&](const Json& row) { flatten(row, "", rows.emplace_back(), columns); };
  for (const char* list : {"rows", "cases", "batches", "filesystems"})
    if (const auto found = report.find(list); found != report.end() && found->is_array())
      for (const Json& row : *found) add_row(row);
  if (rows.empty()) add_row(report);

  std::string text;
  const auto add_line = [&](const auto& cell) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) text += ',';
      text += csv_field(cell(columns[i]));
    }
    text += '\n';
  };
  add_line([](const std::string& column) { return column; });
  for (Cells& cells : rows) add_line([&](const std::string& column) { return cells[column]; });
  return text;
}

}  // namespace shard::bench
