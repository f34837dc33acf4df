#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/file.hpp"
#include "base/quote.hpp"
#include "convert/scan.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{4} << 30U;

void append_le(std::vector<std::byte>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// Keeps the inputs for which `keep` is true, moves the others to the rejects with `reason`.
template <class Keep>
void move_unlabelled(InputList& list, const std::string& reason, Keep keep) {
  std::vector<Input> kept;
  kept.reserve(list.inputs.size());
  for (Input& input : list.inputs) {
    if (keep(input))
      kept.push_back(std::move(input));
    else
      list.rejects.push_back({input.key(), reason});
  }
  list.inputs = std::move(kept);
}

struct CsvRow {
  std::uint64_t line = 0;
  std::vector<std::string> fields;
};

// RFC 4180: fields may be quoted, quotes doubled, line breaks inside quotes; LF or CRLF.
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

template <class T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "nan" and "inf" are numbers too: labels_from_csv() refuses such a row. It does not turn the column into
// class names.
std::optional<float> parse_value(const std::string& text) { return parse_number<float>(text); }

template <class Parse>
bool all_labels(const std::vector<CsvRow>& rows, Parse parse) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const CsvRow& row) { return parse(row.fields[1]).has_value(); });
}

void check_rows(const std::vector<CsvRow>& rows, const std::string& file) {
  if (rows.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no rows: give one per image", file));
  const std::size_t width = rows.front().fields.size();
  for (const CsvRow& row : rows) {
    if (row.fields.size() < 2 || row.fields.size() != width)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: line {}: {} fields, but {} are expected (path,label or path,v1,...,vk)",
                              file, row.line, row.fields.size(), std::max<std::size_t>(width, 2)));
  }
}

// Throws for a row that names no input. If it names a file that was skipped or rejected, the message says
// why.
[[noreturn]] void refuse_unknown(const InputList& list, const Input& wanted, const std::string& where) {
  const std::string key = wanted.key();
  std::string reason = fmt::format("paths are relative to {}", quoted(list.root));
  for (const Skip& skip : list.skipped)
    if (key == skip.key || key.starts_with(skip.key + "/"))
      reason = fmt::format("{} is skipped: {}", quoted_key(skip.key), to_string(skip.reason));
  for (const Reject& reject : list.rejects)
    if (key == reject.key || key.starts_with(reject.key + "/"))
      reason = fmt::format("{} is a reject: {}", quoted_key(reject.key), reject.reason);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: no such image: {} ({})", where, quoted_key(key), reason));
}

}  // namespace

LabelTable labels_from_folders(InputList& list) {
  LabelTable table;
  if (!list.folders.empty())
    move_unlabelled(list, "has no class: it lies beside the class folders, not in one",
                    [](const Input& input) { return input.path.find('/') != std::string::npos; });
  for (const std::string& folder : list.folders) table.classes.push_back(escape_key(folder));
  for (const Input& input : list.inputs) {
    const std::string_view folder = std::string_view(input.path).substr(0, input.path.find('/'));
    const auto it = std::lower_bound(list.folders.begin(), list.folders.end(), folder);
    append_le(table.rows, list.folders.empty() ? 0 : static_cast<std::uint64_t>(it - list.folders.begin()),
              8);
  }
  return table;
}

LabelTable labels_from_numbers(InputList& list) {
  const auto number_of = [&](const Input& input) -> const std::int64_t* {
    const std::string sample = sample_name(input.path);
    const auto at =
        std::lower_bound(list.numbers.begin(), list.numbers.end(), sample,
                         [](const auto& entry, const std::string& name) { return entry.first < name; });
    return at != list.numbers.end() && at->first == sample ? &at->second : nullptr;
  };
  move_unlabelled(list, "has no label: there is no .cls member with its name",
                  [&](const Input& input) { return number_of(input) != nullptr; });
  LabelTable table;
  for (const Input& input : list.inputs)
    append_le(table.rows, static_cast<std::uint64_t>(*number_of(input)), 8);
  return table;
}

LabelTable labels_from_csv(InputList& list, const std::filesystem::path& path, Unlisted unlisted) {
  const std::string file = quoted(path);
  const std::vector<std::byte> bytes = read_file(path, kMaxTableBytes);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<CsvRow> rows = parse_csv(text, file);
  if (!rows.empty() && rows.front().fields[0] == "path") rows.erase(rows.begin());
  check_rows(rows, file);

  std::unordered_map<std::string_view, const CsvRow*> by_path;
  for (const CsvRow& row : rows) {
    const Input wanted{row.fields[0]};
    if (!std::binary_search(list.inputs.begin(), list.inputs.end(), wanted,
                            [](const Input& a, const Input& b) { return a.path < b.path; }))
      refuse_unknown(list, wanted, fmt::format("{}: line {}", file, row.line));
    if (!by_path.emplace(row.fields[0], &row).second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: line {}: {} is labelled twice: give each image one row", file, row.line,
                              quoted_key(wanted.key())));
  }
  const auto is_listed = [&](const Input& input) { return by_path.count(input.path) != 0; };
  if (unlisted == Unlisted::skip)
    list.unlisted = std::erase_if(list.inputs, [&](const Input& input) { return !is_listed(input); });
  else
    move_unlabelled(list, fmt::format("has no label in {}", escape_key(path.filename().string())), is_listed);

  LabelTable table;
  const std::size_t values = rows.front().fields.size() - 1;
  const bool whole = values == 1 && all_labels(rows, parse_number<std::int64_t>);
  const bool names = values == 1 && !whole && !all_labels(rows, parse_value);
  if (names) {
    for (const CsvRow& row : rows) table.classes.push_back(row.fields[1]);
    std::sort(table.classes.begin(), table.classes.end());
    table.classes.erase(std::unique(table.classes.begin(), table.classes.end()), table.classes.end());
  } else if (!whole) {
    table.column = {"labels", DType::f32, {values}};
    table.row_bytes = 4 * values;
  }
  for (const Input& input : list.inputs) {
    const CsvRow& row = *by_path.at(input.path);
    if (whole) {
      append_le(table.rows, static_cast<std::uint64_t>(*parse_number<std::int64_t>(row.fields[1])), 8);
    } else if (names) {
      const auto it = std::lower_bound(table.classes.begin(), table.classes.end(), row.fields[1]);
      append_le(table.rows, static_cast<std::uint64_t>(it - table.classes.begin()), 8);
    } else {
      for (std::size_t v = 1; v <= values; ++v) {
        const auto value = parse_value(row.fields[v]);
        if (!value || !std::isfinite(*value))
          throw Error(ErrorCode::invalid_argument, fmt::format("{}: line {}: {} is not a finite number", file,
                                                               row.line, quoted(row.fields[v])));
        append_le(table.rows, std::bit_cast<std::uint32_t>(*value), 4);
      }
    }
  }
  for (std::string& name : table.classes) name = escape_key(name);
  return table;
}

}  // namespace shard::convert
