// Tables as CSV (RFC 4180).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shard::convert {

struct CsvRow {
  std::uint64_t line = 0;  // of the file, from 1
  std::vector<std::string> fields;
};

// Fields may be quoted, quotes doubled, line breaks inside quotes; LF or CRLF. Empty lines are left out.
// Blanks are part of a field. Throws invalid_argument, naming `file` and the line: quotes that do not close,
// blanks or text around quotes, other line ends.
std::vector<CsvRow> parse_csv(const std::string& text, const std::string& file);

}  // namespace shard::convert
