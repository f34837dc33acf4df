#include "convert/csv.hpp"

#include <fmt/format.h>

#include <utility>

#include "shard/error.hpp"

namespace shard::convert {

std::vector<CsvRow> parse_csv(const std::string& text, const std::string& file) {
  std::vector<CsvRow> rows;
  std::uint64_t line = 1;
  std::size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // the byte order mark of some spreadsheets
  while (i < text.size()) {
    CsvRow row{line, {}};
    for (bool more = true; more;) {
      std::string field;
      if (i < text.size() && text[i] == '"') {
        for (++i;; ++i) {
          if (i >= text.size())
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("{}: line {}: a quoted field has no closing quote", file, row.line));
          if (text[i] == '"') {
            if (i + 1 >= text.size() || text[i + 1] != '"') break;
            ++i;
          }
          if (text[i] == '\n') ++line;
          field += text[i];
        }
        ++i;
      } else {
        while (i < text.size() && text[i] != ',' && text[i] != '\n') field += text[i++];
        if (!field.empty() && field.back() == '\r') field.pop_back();
      }
      row.fields.push_back(std::move(field));
      if (i < text.size() && text[i] == '\r') ++i;
      more = i < text.size() && text[i] == ',';
      if (!more && i < text.size() && text[i] != '\n')
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{}: line {}: text after a quoted field", file, row.line));
      ++i;
    }
    ++line;
    if (row.fields.size() > 1 || !row.fields[0].empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace shard::convert
