#include "convert/annotations/member_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/text/quote.hpp"
#include "convert/annotations/json_fields.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kMaxMemberBytes = std::uint64_t{64} << 20U;

// Why an image has no value for a column.
struct NoColumn {
  std::string why;
  bool lacks = false;  // it is just not there
};

class MemberReader {
 public:
  MemberReader(const InputList& list, const std::vector<ColumnSpec>& columns)
      : list_(list), columns_(columns), reader_(list) {}

  // The field of each column, or why the input has none.
  std::optional<NoColumn> read(const Input& input, std::vector<std::optional<std::string>>& fields) {
    fields.assign(columns_.size(), std::nullopt);
    auto at =
        std::lower_bound(list_.side.begin(), list_.side.end(), input.path,
                         [](const SideMember& member, const std::string& of) { return member.input < of; });
    std::optional<std::string> json;
    for (; at != list_.side.end() && at->input == input.path; ++at) {
      std::string text;
      if (const auto why = read_text(*at, text)) return NoColumn{*why};
      for (std::size_t c = 0; c < columns_.size(); ++c)
        if (columns_[c].name == at->extension) fields[c] = text;
      if (at->extension == "json") json = std::move(text);
    }
    if (json)
      if (const auto problem = read_json(*json, fields)) return problem;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (!fields[c])
        return NoColumn{
            fmt::format("has no column {}: there is no member .{}{}", quoted(columns_[c].name),
                        columns_[c].name, json ? ", and none of this name in its .json" : ", and no .json"),
            true};
    return std::nullopt;
  }

 private:
  // Fills the fields that no member of their own has.
  std::optional<NoColumn> read_json(const std::string& json,
                                    std::vector<std::optional<std::string>>& fields) const {
    try {
      std::vector<JsonField> found = json_fields(json, columns_);
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (fields[c]) continue;
        if (!found[c].problem.empty())
          return NoColumn{fmt::format("has no column {}: its member in the .json {}",
                                      quoted(columns_[c].name), found[c].problem)};
        fields[c] = std::move(found[c].text);
      }
    } catch (const Error& error) {
      return NoColumn{error.what()};
    }
    return std::nullopt;
  }

  // The problem, if it cannot be read.
  std::optional<std::string> read_text(const SideMember& member, std::string& text) {
    if (member.problem) return *member.problem;
    if (member.size_bytes > kMaxMemberBytes)
      return fmt::format("its member .{} has {} bytes: at most {} are read", member.extension,
                         member.size_bytes, kMaxMemberBytes);
    try {
      text = as_text(reader_.read(
          Input{member.input, member.archive, Input::kNoPage, member.offset, member.size_bytes}));
    } catch (const UnreadableInput& error) {
      return fmt::format("its member .{}: {}", member.extension, error.what());
    }
    // Editors end a file with a line break, which is not part of its text.
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return std::nullopt;
  }

  const InputList& list_;
  const std::vector<ColumnSpec>& columns_;
  InputReader reader_;
};

}  // namespace

std::vector<ColumnTable> columns_from_members(InputList& list, LabelTable& labels,
                                              const std::vector<ColumnSpec>& columns, Unlisted unlisted) {
  std::vector<ColumnTable> tables(columns.begin(), columns.end());
  MemberReader members(list, columns);
  std::vector<std::optional<std::string>> fields;
  std::vector<Input> kept;
  std::vector<Reject> rejects;
  std::vector<std::byte> rows;
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    Input& input = list.inputs[i];
    if (const auto problem = members.read(input, fields)) {
      if (unlisted == Unlisted::skip && problem->lacks)
        ++list.unlisted;
      else
        rejects.push_back({input.key(), escape_key(problem->why)});
      continue;
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      try {
        tables[c].add(parse_rows(columns[c], *fields[c]));
      } catch (const Error& error) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("image {}, column {} ({}): {}", quoted_key(input.key()),
                                quoted(columns[c].name), to_string(columns[c]), error.what()));
      }
    }
    const auto row = std::span(labels.rows).subspan(i * labels.row_bytes, labels.row_bytes);
    rows.insert(rows.end(), row.begin(), row.end());
    kept.push_back(std::move(input));
  }
  if (kept.empty() && rejects.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("none of the {} images has the columns that are asked for: nothing would be stored",
                    list.inputs.size()));
  list.inputs = std::move(kept);
  list.rejects.insert(list.rejects.end(), std::make_move_iterator(rejects.begin()),
                      std::make_move_iterator(rejects.end()));
  labels.rows = std::move(rows);
  return tables;
}

}  // namespace shard::convert
