#include "convert/annotations/csv.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/utf8.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

// A field without quotes around it.
void check_plain(const std::string& field, std::uint64_t line, const std::string& file) {
  if (field.find('\r') != std::string::npos)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: line {}: a carriage return inside a line: end lines with LF or CRLF, and quote "
                    "fields that contain one",
                    file, line));
  const std::size_t first = field.find_first_not_of(" \t");
  if (first != 0 && first != std::string::npos && field[first] == '"')
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: line {}: blanks in front of a quoted field: remove them", file, line));
}

}  // namespace

std::vector<CsvRow> parse_csv(const std::string& text, const std::string& file) {
  std::vector<CsvRow> rows;
  std::uint64_t line = 1;
  std::size_t i = text.size() - without_byte_order_mark(text).size();
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
        const bool ends_line = i >= text.size() || text[i] == '\n';
        if (ends_line && !field.empty() && field.back() == '\r') field.pop_back();
        check_plain(field, row.line, file);
      }
      row.fields.push_back(std::move(field));
      if (i < text.size() && text[i] == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) ++i;
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
