#include "convert/member_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/json.hpp"
#include "base/quote.hpp"
#include "convert/input_file.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kMaxMemberBytes = std::uint64_t{64} << 20U;

// The values of the wanted members of a JSON object as fields of a table: text as it is, and numbers, of lists of any depth, with
// spaces between them. Members that are null or objects are left out.
class JsonFields final : public JsonHandler {
 public:
  JsonFields(const std::vector<ColumnSpec>& columns, std::vector<std::optional<std::string>>& fields)
      : columns_(columns), fields_(fields) {}

  void null() override {
    if (depth_ == 1) wanted_ = nullptr;
  }
  void boolean(bool value) override { add(value ? "true" : "false"); }
  void unsigned_integer(std::uint64_t value) override { add(fmt::to_string(value)); }
  void other_number(std::string_view text) override { add(text); }
  void string(std::string&& value) override { add(value); }
  void begin_object() override {
    if (++depth_ > 1 && objects_++ == 0 && wanted_ != nullptr) wanted_->reset();
  }
  void end_object() override {
    if (--depth_ >= 1) --objects_;
  }
  void begin_array() override {
    if (depth_++ == 1 && wanted_ != nullptr) *wanted_ = "";  // an empty list is a value too
  }
  void end_array() override { --depth_; }
  void key(std::string&& name) override {
    if (depth_ != 1 || objects_ != 0) return;
    wanted_ = nullptr;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].name == name) wanted_ = &fields_[c];
    if (wanted_ != nullptr) wanted_->reset();  // of two members with one name the last counts
  }

 private:
  void add(std::string_view word) {
    if (wanted_ == nullptr || objects_ != 0 || depth_ == 0) return;
    if (!*wanted_)
      *wanted_ = word;
    else
      *wanted_ = fmt::format("{}{}{}", **wanted_, (*wanted_)->empty() ? "" : " ", word);
  }

  const std::vector<ColumnSpec>& columns_;
  std::vector<std::optional<std::string>>& fields_;
  std::optional<std::string>* wanted_ = nullptr;
  std::size_t depth_ = 0;
  std::size_t objects_ = 0;  // below the document
};

class MemberReader {
 public:
  MemberReader(const InputList& list, const std::vector<ColumnSpec>& columns)
      : list_(list), columns_(columns), reader_(list) {}

  // The field of each column, or why the input has none.
  std::optional<std::string> read(const Input& input, std::vector<std::optional<std::string>>& fields) {
    fields.assign(columns_.size(), std::nullopt);
    const std::string sample = sample_name(input.path);
    auto at =
        std::lower_bound(list_.side.begin(), list_.side.end(), sample,
                         [](const SideMember& member, const std::string& of) { return member.sample < of; });
    std::optional<std::string> problem;
    std::string json;
    bool has_json = false;
    for (; at != list_.side.end() && at->sample == sample; ++at) {
      std::string text;
      if (const auto why = read_text(*at, text)) {
        problem = why;
        continue;
      }
      if (at->extension == "json") {
        json = std::move(text);
        has_json = true;
      } else {
        for (std::size_t c = 0; c < columns_.size(); ++c)
          if (columns_[c].name == at->extension) fields[c] = text;
      }
    }
    if (problem) return problem;
    if (has_json) {
      std::vector<std::optional<std::string>> found(columns_.size());
      JsonFields handler(columns_, found);
      try {
        parse_json(json, handler, "its .json member");
      } catch (const Error& error) {
        return error.what();
      }
      for (std::size_t c = 0; c < columns_.size(); ++c)
        if (!fields[c]) fields[c] = std::move(found[c]);
    }
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (!fields[c])
        return fmt::format("has no column {}: there is no member .{}{}", quoted(columns_[c].name),
                           columns_[c].name,
                           has_json ? ", and none of this name in its .json" : ", and no .json");
    return std::nullopt;
  }

 private:
  // The problem, if it cannot be read.
  std::optional<std::string> read_text(const SideMember& member, std::string& text) {
    if (member.size_bytes > kMaxMemberBytes)
      return fmt::format("its member .{} has {} bytes: at most {} are read", member.extension,
                         member.size_bytes, kMaxMemberBytes);
    try {
      text = as_text(reader_.read(
          Input{member.sample, member.archive, Input::kNoPage, member.offset, member.size_bytes}));
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
      if (unlisted == Unlisted::skip)
        ++list.unlisted;
      else
        rejects.push_back({input.key(), escape_key(*problem)});
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
