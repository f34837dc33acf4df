#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_map>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "convert/annotations/csv.hpp"
#include "convert/annotations/label_column.hpp"
#include "convert/sources/number_text.hpp"
#include "convert/sources/scan.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{4} << 30U;

// Line ends within quotes are part of a field.
std::string_view without_blanks(std::string_view text) { return trimmed(text, " \t"); }

void append_le(std::vector<std::byte>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// Keeps the inputs for which `keep` is true, moves the others to the rejects with `reason`.
template <class Keep>
void move_unlabelled(InputList& list, const std::string& reason, Keep keep) {
  auto end = list.inputs.begin();
  for (auto input = end; input != list.inputs.end(); ++input) {
    if (!keep(*input)) {
      list.rejects.push_back({input->key(), reason});
      continue;
    }
    if (end != input) *end = std::move(*input);
    ++end;
  }
  list.inputs.erase(end, list.inputs.end());
}

void check_rows(const std::vector<CsvRow>& rows, const std::string& file) {
  if (rows.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no rows: give one per image", file));
  const std::size_t width = rows.front().fields.size();
  for (const CsvRow& row : rows) {
    if (row.fields.size() < 2 || row.fields.size() != width)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: line {}: {} fields, but {} are expected (path,label or path,v1,...,vk, with "
                      "commas between them)",
                      file, row.line, row.fields.size(), std::max<std::size_t>(width, 2)));
  }
}

// Throws for a row that names no input. If it names a file that was skipped or rejected, the message says
// why.
[[noreturn]] void refuse_unknown(const InputList& list, const Input& wanted, const std::string& where,
                                 bool is_first_line) {
  const std::string key = wanted.key();
  std::string reason = fmt::format("paths are relative to {}", quoted(list.root));
  if (list.has_prefixes() && !list.inputs.empty())
    reason = fmt::format(
        "archives have images of one name, so paths begin with the names of their archives, as {} does",
        quoted_key(list.inputs.front().key()));
  for (const Skip& skip : list.skipped)
    if (key == skip.key || key.starts_with(skip.key + "/"))
      reason = fmt::format("{} is skipped: {}", quoted_key(skip.key), to_string(skip.reason));
  for (const Reject& reject : list.rejects)
    if (key == reject.key || key.starts_with(reject.key + "/"))
      reason = fmt::format("{} is a reject: {}", quoted_key(reject.key), reject.reason);
  const std::string header = is_first_line ? "; a line of names has `path` first" : "";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: no such image: {} ({}{})", where, quoted_key(key), reason, header));
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
  table.rows.resize(8 * list.inputs.size());
  auto folder = list.folders.begin();  // neighbours have the same
  for (std::size_t i = 0; i < list.inputs.size() && !table.unlabelled; ++i) {
    const std::string_view path = list.path_inside(list.inputs[i]);
    const std::string_view top = path.substr(0, path.find('/'));
    if (folder == list.folders.end() || *folder != top)
      folder = std::lower_bound(list.folders.begin(), list.folders.end(), top);
    store_u64(table.rows, 8 * i, static_cast<std::uint64_t>(folder - list.folders.begin()));
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
                                         : list.of_arrays()
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
    if (!rows_.empty() && (header || without_blanks(rows_.front().fields[0]) == "path")) {
      header_ = rows_.front();
      rows_.erase(rows_.begin());
      check_header();
    }
    check_rows(rows_, file_);
    if (header_.line != 0 && header_.fields.size() != rows_.front().fields.size())
      refuse(rows_.front(), fmt::format("{} fields, but the first line names {}", rows_.front().fields.size(),
                                        header_.fields.size()));
  }

  const std::vector<CsvRow>& rows() const { return rows_; }
  const CsvRow& row_of(const Input& input) const { return *by_path_.at(input.path); }
  const std::string& name() const { return file_; }
  std::string plain_name() const { return escape_key(path_.filename().string()); }

  // Of a table whose labels are all its columns.
  void require_only_labels() const {
    const std::size_t label = find_label();
    if (label != 0 && header_.fields.size() > 2)
      refuse(header_,
             fmt::format("it names the column {} and others: say with `columns` which of these are "
                         "stored, or remove them. Without a column of this name, all of them are the "
                         "label: path,v1,...,vk",
                         quoted(header_.fields[label])));
  }

  // The position of a named column; 0: there is none.
  std::size_t find(std::string_view name) const {
    if (header_.fields.empty()) return 0;
    const auto at = std::find(header_.fields.begin() + 1, header_.fields.end(), name);
    return at == header_.fields.end() ? 0 : static_cast<std::size_t>(at - header_.fields.begin());
  }
  // "label" or "labels"; 0: neither.
  std::size_t find_label() const {
    const std::size_t one = find("label");
    const std::size_t other = find("labels");
    if (one != 0 && other != 0)
      refuse(header_, "it names the columns \"label\" and \"labels\": rename the one that is not the label");
    return std::max(one, other);
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
    const auto is_input = [&](const std::string& path) {
      return std::binary_search(list.inputs.begin(), list.inputs.end(), Input{path},
                                [](const Input& a, const Input& b) { return a.path < b.path; });
    };
    if (header_.line != 0 && is_input(header_.fields[0]))
      refuse(header_,
             fmt::format("{} is an image, and also begins the line that names the columns: rename the "
                         "image",
                         quoted(header_.fields[0])));
    std::erase_if(rows_, [&](const CsvRow& row) {
      const std::string& path = row.fields[0];
      const std::vector<std::string>& without = list.without_files;
      return std::binary_search(without.begin(), without.end(), path) ||
             (!is_input(path) &&
              std::binary_search(without.begin(), without.end(), std::string(without_blanks(path))));
    });
    for (CsvRow& row : rows_) {
      std::string& path = row.fields[0];
      if (!is_input(path)) {
        const Input plain{std::string(without_blanks(path))};
        if (!is_input(plain.path))
          refuse_unknown(list, Input{path}, fmt::format("{}: line {}", file_, row.line), row.line == 1);
        path = plain.path;
      }
      if (!by_path_.emplace(path, &row).second)
        refuse(row,
               fmt::format("{} is labelled twice: give each image one row", quoted_key(Input{path}.key())));
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
  void check_header() {
    for (std::string& name : header_.fields) name = without_blanks(name);
    std::vector<std::string_view> names;
    for (const std::string& name : header_.fields)
      if (!name.empty()) names.push_back(name);
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
      refuse(header_,
             fmt::format("two columns are named {}: which one counts cannot be told", quoted(*twice)));
  }

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

// Moves inputs with an empty label to the rejects.
void reject_empty(const ImageTable& file, InputList& list, std::size_t first, std::size_t last) {
  std::vector<Input> kept;
  kept.reserve(list.inputs.size());
  for (Input& input : list.inputs) {
    const CsvRow& row = file.row_of(input);
    const bool empty = std::any_of(row.fields.begin() + static_cast<std::ptrdiff_t>(first),
                                   row.fields.begin() + static_cast<std::ptrdiff_t>(last),
                                   [](const std::string& field) { return without_blanks(field).empty(); });
    if (empty)
      list.rejects.push_back(
          {input.key(), fmt::format("has an empty label in {}, line {}", file.plain_name(), row.line)});
    else
      kept.push_back(std::move(input));
  }
  list.inputs = std::move(kept);
}

// From the fields [first, last) of each row: whole numbers, or names, or float32.
LabelTable labels_of(const ImageTable& file, InputList& list, std::size_t first, std::size_t last) {
  LabelTable table;
  reject_empty(file, list, first, last);
  const auto field_of = [&](const CsvRow& row, std::size_t at) {
    return LabelField{row.line, without_blanks(row.fields[at])};
  };
  const std::size_t values = last - first;
  LabelKind kind = LabelKind::values;
  if (values == 1) {
    std::vector<LabelField> fields;
    for (const CsvRow& row : file.rows())
      if (const LabelField field = field_of(row, first); !field.text.empty()) fields.push_back(field);
    kind = label_kind(fields, file.name());
    if (kind == LabelKind::names) {
      for (const LabelField& field : fields) {
        if (field.text.find('\0') != std::string_view::npos)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("{}: line {}: the class {} has a zero byte: remove it", file.name(),
                                  field.line, quoted_excerpt(field.text)));
        table.classes.emplace_back(field.text);
      }
      std::sort(table.classes.begin(), table.classes.end());
      table.classes.erase(std::unique(table.classes.begin(), table.classes.end()), table.classes.end());
    }
  }
  if (kind == LabelKind::values) {
    table.column = {"labels", DType::f32, {values}};
    table.row_bytes = 4 * values;
  }
  for (const Input& input : list.inputs) {
    const CsvRow& row = file.row_of(input);
    if (kind == LabelKind::whole) {
      append_le(table.rows,
                static_cast<std::uint64_t>(*parse_number<std::int64_t>(field_of(row, first).text)), 8);
    } else if (kind == LabelKind::names) {
      const auto it = std::lower_bound(table.classes.begin(), table.classes.end(), field_of(row, first).text);
      append_le(table.rows, static_cast<std::uint64_t>(it - table.classes.begin()), 8);
    } else {
      for (std::size_t v = first; v < last; ++v)
        append_le(table.rows, std::bit_cast<std::uint32_t>(label_value(field_of(row, v), file.name())), 4);
    }
  }
  for (std::string& name : table.classes) name = escape_key(name);
  return table;
}

}  // namespace

LabelTable labels_from_csv(InputList& list, const std::filesystem::path& path, Unlisted unlisted) {
  ImageTable file(path, false);
  file.require_only_labels();
  file.match(list, unlisted);
  return labels_of(file, list, 1, file.rows().front().fields.size());
}

CsvTable table_from_csv(InputList& list, const std::filesystem::path& path,
                        const std::vector<ColumnSpec>& columns, Unlisted unlisted) {
  ImageTable file(path, true);
  std::vector<std::size_t> fields;
  for (const ColumnSpec& column : columns) fields.push_back(file.require(column.name));
  file.match(list, unlisted);
  const std::size_t label = file.find_label();
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
