#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "convert/csv.hpp"
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
bool all_labels(const std::vector<CsvRow>& rows, std::size_t field, Parse parse) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const CsvRow& row) { return parse(row.fields[field]).has_value(); });
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
    move_unlabelled(
        list, "has no class: it lies beside the class folders, not in one",
        [&](const Input& input) { return list.path_inside(input).find('/') != std::string::npos; });
  for (const std::string& folder : list.folders) table.classes.push_back(escape_key(folder));
  table.unlabelled = list.folders.empty();
  for (const Input& input : list.inputs) {
    const std::string_view path = list.path_inside(input);
    const auto it =
        std::lower_bound(list.folders.begin(), list.folders.end(), path.substr(0, path.find('/')));
    append_le(table.rows, list.folders.empty() ? 0 : static_cast<std::uint64_t>(it - list.folders.begin()),
              8);
  }
  return table;
}

namespace {

// The value for an input of a sorted list, or null.
template <class Value>
const Value* value_of(const std::vector<std::pair<std::string, Value>>& sorted, const Input& input) {
  const auto at =
      std::lower_bound(sorted.begin(), sorted.end(), input.path,
                       [](const auto& entry, const std::string& path) { return entry.first < path; });
  return at != sorted.end() && at->first == input.path ? &at->second : nullptr;
}

}  // namespace

LabelTable labels_from_numbers(InputList& list) {
  LabelTable table;
  std::vector<Input> kept;
  kept.reserve(list.inputs.size());
  for (Input& input : list.inputs) {
    if (const std::int64_t* const number = value_of(list.numbers, input)) {
      append_le(table.rows, static_cast<std::uint64_t>(*number), 8);
      kept.push_back(std::move(input));
      continue;
    }
    const std::string* const why = value_of(list.unclear_numbers, input);
    list.rejects.push_back({input.key(), why != nullptr ? *why
                                         : !list.archive_headers.empty()
                                             ? "has no label: its array comes without labels"
                                             : "has no label: there is no .cls member with its name"});
  }
  list.inputs = std::move(kept);
  return table;
}

namespace {

// A file of rows for images, by their paths.
class ImageTable {
 public:
  // `header`: the first line names the columns. If not, a first line that begins with "path" is passed over.
  ImageTable(const std::filesystem::path& path, bool header)
      : path_(path), file_(quoted(path)), rows_(read(path, file_)) {
    if (!rows_.empty() && (header || rows_.front().fields[0] == "path")) {
      header_ = rows_.front();
      rows_.erase(rows_.begin());
    }
    check_rows(rows_, file_);
    if (header && header_.fields.size() != rows_.front().fields.size())
      refuse(rows_.front(), fmt::format("{} fields, but the first line names {}", rows_.front().fields.size(),
                                        header_.fields.size()));
  }

  const std::vector<CsvRow>& rows() const { return rows_; }
  const CsvRow& row_of(const Input& input) const { return *by_path_.at(input.path); }

  // The position of a named column; 0: there is none.
  std::size_t find(std::string_view name) const {
    const auto at = std::find(header_.fields.begin() + 1, header_.fields.end(), name);
    return at == header_.fields.end() ? 0 : static_cast<std::size_t>(at - header_.fields.begin());
  }
  std::size_t require(const std::string& name) const {
    const std::size_t at = find(name);
    if (at != 0) return at;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has no column {}: its first line must name it, and has {}", file_,
                            quoted(name), quoted_excerpt(fmt::format("{}", fmt::join(header_.fields, ",")))));
  }

  // Finds the row of each input. Inputs without one leave the list.
  void match(InputList& list, Unlisted unlisted) {
    for (const CsvRow& row : rows_) {
      const Input wanted{row.fields[0]};
      if (!std::binary_search(list.inputs.begin(), list.inputs.end(), wanted,
                              [](const Input& a, const Input& b) { return a.path < b.path; }))
        refuse_unknown(list, wanted, fmt::format("{}: line {}", file_, row.line));
      if (!by_path_.emplace(row.fields[0], &row).second)
        refuse(row, fmt::format("{} is labelled twice: give each image one row", quoted_key(wanted.key())));
    }
    const auto is_listed = [&](const Input& input) { return by_path_.count(input.path) != 0; };
    if (unlisted == Unlisted::skip)
      list.unlisted = std::erase_if(list.inputs, [&](const Input& input) { return !is_listed(input); });
    else
      move_unlabelled(list, fmt::format("has no label in {}", escape_key(path_.filename().string())),
                      is_listed);
  }

  [[noreturn]] void refuse(const CsvRow& row, const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: line {}: {}", file_, row.line, why));
  }

 private:
  static std::vector<CsvRow> read(const std::filesystem::path& path, const std::string& file) {
    const std::vector<std::byte> bytes = read_file(path, kMaxTableBytes);
    return parse_csv(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file);
  }

  const std::filesystem::path& path_;
  std::string file_;
  std::vector<CsvRow> rows_;
  CsvRow header_;
  std::unordered_map<std::string_view, const CsvRow*> by_path_;
};

// From the fields [first, last) of each row: whole numbers or names if it is one, else float32.
LabelTable labels_of(const ImageTable& file, const InputList& list, std::size_t first, std::size_t last) {
  LabelTable table;
  const std::size_t values = last - first;
  const bool whole = values == 1 && all_labels(file.rows(), first, parse_number<std::int64_t>);
  const bool names = values == 1 && !whole && !all_labels(file.rows(), first, parse_value);
  if (names) {
    for (const CsvRow& row : file.rows()) table.classes.push_back(row.fields[first]);
    std::sort(table.classes.begin(), table.classes.end());
    table.classes.erase(std::unique(table.classes.begin(), table.classes.end()), table.classes.end());
  } else if (!whole) {
    table.column = {"labels", DType::f32, {values}};
    table.row_bytes = 4 * values;
  }
  for (const Input& input : list.inputs) {
    const CsvRow& row = file.row_of(input);
    if (whole) {
      append_le(table.rows, static_cast<std::uint64_t>(*parse_number<std::int64_t>(row.fields[first])), 8);
    } else if (names) {
      const auto it = std::lower_bound(table.classes.begin(), table.classes.end(), row.fields[first]);
      append_le(table.rows, static_cast<std::uint64_t>(it - table.classes.begin()), 8);
    } else {
      for (std::size_t v = first; v < last; ++v) {
        const auto value = parse_value(row.fields[v]);
        if (!value || !std::isfinite(*value))
          file.refuse(row, fmt::format("{} is not a finite number", quoted(row.fields[v])));
        append_le(table.rows, std::bit_cast<std::uint32_t>(*value), 4);
      }
    }
  }
  for (std::string& name : table.classes) name = escape_key(name);
  return table;
}

}  // namespace

LabelTable labels_from_csv(InputList& list, const std::filesystem::path& path, Unlisted unlisted) {
  ImageTable file(path, false);
  file.match(list, unlisted);
  return labels_of(file, list, 1, file.rows().front().fields.size());
}

CsvTable table_from_csv(InputList& list, const std::filesystem::path& path,
                        const std::vector<ColumnSpec>& columns, Unlisted unlisted) {
  ImageTable file(path, true);
  std::vector<std::size_t> fields;
  for (const ColumnSpec& column : columns) fields.push_back(file.require(column.name));
  file.match(list, unlisted);
  const std::size_t label = std::max(file.find("label"), file.find("labels"));
  CsvTable table{label == 0 ? labels_from_folders(list) : labels_of(file, list, label, label + 1), {}};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    ColumnTable& values = table.columns.emplace_back(columns[c]);
    for (const Input& input : list.inputs) {
      const CsvRow& row = file.row_of(input);
      try {
        values.add(parse_rows(columns[c], row.fields[fields[c]]));
      } catch (const Error& error) {
        file.refuse(row, fmt::format("image {}, column {} ({}): {}", quoted_key(input.key()),
                                     quoted(columns[c].name), to_string(columns[c]), error.what()));
      }
    }
  }
  return table;
}

}  // namespace shard::convert
