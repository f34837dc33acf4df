#include <fmt/format.h>

#include "cli/text.hpp"
#include "report/page.hpp"

namespace shard::bench {
namespace {

std::string table_text(const PageTable& table) {
  using cli::Table;
  std::vector<Table::Align> columns(table.head.size(), Table::Align::right);
  for (std::size_t i = 0; i < table.head.size() && i < table.names; ++i) columns[i] = Table::Align::left;
  Table text(columns, "  ");
  text.add_row(table.head);
  std::string left_out;
  for (const PageRow& row : table.rows) {
    std::vector<std::string> cells = row.cells;
    if (row.emulated && !cells.empty()) cells[0] += " (emulated)";
    if (!row.problem.empty() && cells.size() < table.head.size()) {
      left_out += fmt::format("{} was left out: {}\n", fmt::join(cells, ", "), row.problem);
      cells.emplace_back("left out");
    }
    text.add_row(std::move(cells));
  }
  return fmt::format("{}\n{}{}\n", table.caption, text.to_string(), left_out);
}

}  // namespace

std::string to_text(const PageSection& section) {
  std::string text;
  for (const std::string& problem : section.problems) text += problem + "\n";
  for (const PageTable& table : section.tables)
    if (!table.rows.empty()) text += table_text(table);
  if (!section.says.empty()) text += section.says + "\n";
  for (const std::string& note : section.notes) text += note + "\n";
  for (std::size_t at = 0; (at = text.find("\u00a0", at)) != std::string::npos;) text.replace(at, 2, " ");
  return text;
}

}  // namespace shard::bench
