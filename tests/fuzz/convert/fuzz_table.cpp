// Any bytes as a table of labels and as the JSON of a sample. What is taken must be what the text says.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/words.hpp"
#include "convert/annotations/csv.hpp"
#include "convert/annotations/json_fields.hpp"
#include "convert/annotations/label_column.hpp"
#include "convert/sources/column_table.hpp"
#include "convert/sources/number_text.hpp"

namespace {

using namespace shard;
using namespace shard::convert;

void read_table(const std::string& text) {
  for (std::size_t column = 0; column < 3; ++column) {
    const std::vector<CsvRow> rows = parse_csv(text, "fuzz.csv");
    std::vector<LabelField> fields;
    for (const CsvRow& row : rows)
      if (column < row.fields.size() && !trimmed(row.fields[column]).empty())
        fields.push_back({row.line, trimmed(row.fields[column])});
    const LabelKind kind = label_kind(fields, "fuzz.csv");
    std::size_t numbers = 0;
    for (const LabelField& field : fields) {
      if (kind == LabelKind::whole && !parse_number<std::int64_t>(field.text)) std::abort();
      if (kind == LabelKind::values) static_cast<void>(label_value(field, "fuzz.csv"));
      if (is_whole_text(field.text)) ++numbers;
    }
    if (kind != LabelKind::whole && !fields.empty() && 2 * numbers >= fields.size()) std::abort();
  }
}

void read_json(std::string_view text) {
  const std::vector<ColumnSpec> columns{{"v", DType::i64, {2}, ColumnKind::ragged},
                                        {"f", DType::f32, {2, 2}, ColumnKind::fixed},
                                        {"t", DType::u8, {}, ColumnKind::text}};
  const std::vector<JsonField> fields = json_fields(text, columns);
  if (fields.size() != columns.size()) std::abort();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!fields[c].problem.empty() || !fields[c].text) continue;
    const std::vector<std::byte> rows = parse_rows(columns[c], *fields[c].text);
    if (columns[c].kind == ColumnKind::ragged && rows.size() % columns[c].row_bytes() != 0) std::abort();
    if (columns[c].kind == ColumnKind::fixed && rows.size() != columns[c].row_bytes()) std::abort();
  }
}

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::corrupt) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] { read_table(text); });
  attempt([&] { read_json(text); });
  return 0;
}
