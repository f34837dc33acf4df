#include "convert/annotations/json_fields.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/text/json.hpp"
#include "base/text/utf8.hpp"

namespace shard::convert {

namespace {

class JsonFields final : public JsonHandler {
 public:
  JsonFields(const std::vector<ColumnSpec>& columns, std::vector<JsonField>& fields)
      : columns_(columns), fields_(fields), seen_(columns.size()) {}

  void null() override {
    if (in_list()) refuse("has null in a list: no number stands for it");
  }
  void boolean(bool value) override { add(value ? "true" : "false"); }
  void unsigned_integer(std::uint64_t value) override { add(fmt::to_string(value)); }
  void other_number(std::string_view text) override { add(text); }
  void string(std::string&& value) override {
    if (in_list()) return refuse("has text in a list");
    add(value);
  }
  void begin_object() override {
    if (in_list()) refuse("has an object in a list");
    if (depth_++ > 0) ++objects_;
  }
  void end_object() override {
    if (--depth_ > 0) --objects_;
  }
  void begin_array() override {
    if (wanted() && depth_ == 1) {
      field_->text = "";  // an empty list is a value too
      count_ = 0;
      lists_.clear();
      if (column_->kind == ColumnKind::text) refuse("is a list, and the column is text");
    }
    if (wanted()) lists_.push_back({count_, 0});
    ++depth_;
  }
  void end_array() override {
    --depth_;
    if (!wanted() || lists_.empty()) return;
    const List list = lists_.back();
    lists_.pop_back();
    if (!lists_.empty()) check_rows(list, lists_.back());
  }
  void key(std::string&& name) override {
    if (depth_ != 1 || objects_ != 0) return;
    field_ = nullptr;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].name != name) continue;
      field_ = &fields_[c];
      column_ = &columns_[c];
      if (seen_[c]) refuse("is there twice: which one counts cannot be told");
      seen_[c] = true;
    }
  }

 private:
  // An open list of the member.
  struct List {
    std::uint64_t begin = 0;  // the numbers in front of it
    std::uint64_t part = 0;   // how many numbers the list inside it had that was shorter than a row
  };

  bool wanted() const { return field_ != nullptr && objects_ == 0; }
  bool in_list() const { return wanted() && depth_ > 1; }
  void refuse(const char* why) {
    if (field_->problem.empty()) field_->problem = why;
  }

  void add(std::string_view word) {
    if (!wanted() || depth_ == 0) return;
    std::optional<std::string>& text = field_->text;
    if (!text)
      text = word;
    else
      *text = fmt::format("{}{}{}", *text, text->empty() ? "" : " ", word);
    ++count_;
  }

  // A list inside `outer` has ended: it has whole rows, or is the same part of a row as those beside it.
  void check_rows(const List& list, List& outer) {
    std::uint64_t row = 1;
    for (const std::uint64_t axis : column_->row_shape) row *= axis;
    const std::uint64_t count = count_ - list.begin;
    if (count == 0) return;
    const bool rows = count % row == 0 && list.begin % row == 0;
    const bool part = row % count == 0 && list.begin % count == 0 && (outer.part == 0 || outer.part == count);
    if (!rows && !part) refuse("has lists that do not fit the shape of the column");
    if (!rows) outer.part = count;
  }

  const std::vector<ColumnSpec>& columns_;
  std::vector<JsonField>& fields_;
  std::vector<bool> seen_;
  JsonField* field_ = nullptr;  // of the member that is being read; null: nobody wants it
  const ColumnSpec* column_ = nullptr;
  std::vector<List> lists_;
  std::uint64_t count_ = 0;  // numbers of the member
  std::size_t depth_ = 0;    // open lists and objects
  std::size_t objects_ = 0;  // open objects below the document
};

}  // namespace

std::vector<JsonField> json_fields(std::string_view json, const std::vector<ColumnSpec>& columns) {
  std::vector<JsonField> fields(columns.size());
  JsonFields handler(columns, fields);
  parse_json(without_byte_order_mark(json), handler, "its .json member");
  return fields;
}

}  // namespace shard::convert
