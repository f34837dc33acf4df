#include "convert/annotations/class_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/bytes.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void refuse_classes(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

// "ant", "bee", "cow" and 7 more
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, names.size()); ++i)
    text += (i == 0 ? "" : ", ") + quoted_excerpt(names[i]);
  if (names.size() > kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
  return text;
}

std::uint64_t label_at(const LabelTable& labels, std::size_t input) {
  return load_u64(labels.rows, 8 * input);
}

// Names become positions.
void map_names(const std::vector<std::string>& classes, const InputList& list, LabelTable& labels) {
  std::unordered_map<std::string_view, std::uint64_t> numbers;
  for (const std::string& name : classes) numbers.emplace(name, numbers.size());
  std::vector<std::optional<std::uint64_t>> to;
  std::vector<std::string> unknown;
  for (const std::string& escaped : labels.classes) {
    const std::string name = unescape_key(escaped);
    const auto at = numbers.find(name);
    to.push_back(at == numbers.end() ? std::nullopt : std::optional(at->second));
    if (!to.back()) unknown.push_back(name);
  }
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    const auto number = to.at(label_at(labels, i));
    if (!number)
      refuse_classes(fmt::format(
          "{} is of the class {}, which is not one of the {} of `classes` ({}): add its name to the "
          "list, or leave its images out{}",
          quoted_key(list.inputs[i].key()), quoted(unescape_key(labels.classes[label_at(labels, i)])),
          classes.size(), some_of(classes),
          unknown.size() > 1 ? fmt::format("; not in the list are {}", some_of(unknown)) : ""));
    store_u64(labels.rows, 8 * i, *number);
  }
  if (!unknown.empty())  // a folder that could not be read, or whose images are all left out
    refuse_classes(fmt::format(
        "the class {} is not one of the {} of `classes` ({}): add its name to the list, or move its folder "
        "away",
        quoted(unknown.front()), classes.size(), some_of(classes)));
}

// Numbers stay, if they are positions.
void check_numbers(const std::vector<std::string>& classes, const InputList& list, const LabelTable& labels) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto value = number_of<std::int64_t>(classes[i]);
    if (value && *value != static_cast<std::int64_t>(i))
      refuse_classes(fmt::format(
          "the labels of these images are whole numbers, and `classes` has the name {} at position {}: is {} "
          "the name or the position? Give the labels as other names, or leave `classes` out, and the numbers "
          "are stored as they are",
          quoted(classes[i]), i, *value));
  }
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    const auto label = static_cast<std::int64_t>(label_at(labels, i));
    if (label < 0 || static_cast<std::uint64_t>(label) >= classes.size())
      refuse_classes(fmt::format("{} has the label {}, and `classes` has {} names, for 0 to {}",
                                 quoted_key(list.inputs[i].key()), label, classes.size(),
                                 classes.size() - 1));
  }
}

}  // namespace

void use_class_names(const std::vector<std::string>& classes, const InputList& list, LabelTable& labels) {
  const bool numbers = labels.column.dtype == DType::i64 && labels.column.row_shape.empty();
  if (!numbers)
    refuse_classes(
        fmt::format("`classes` names labels that are classes, and those of these images are {}: leave it out",
                    to_string(labels.column)));
  if (labels.unlabelled)
    refuse_classes(
        "`classes`: nothing says which class these images are of: none is in a folder of a class, and there "
        "is no table of "
        "labels");
  if (labels.classes.empty())
    check_numbers(classes, list, labels);
  else
    map_names(classes, list, labels);
  labels.classes.clear();
  for (const std::string& name : classes) labels.classes.push_back(escape_key(name));
}

std::string new_classes_warning(const std::vector<std::string>& there, const std::vector<std::string>& added,
                                const std::string& out) {
  const std::unordered_set<std::string_view> known(there.begin(), there.end());
  std::vector<std::string> unknown;
  for (const std::string& name : added)
    if (!known.contains(name)) unknown.push_back(unescape_key(name));
  if (unknown.empty()) return {};
  return fmt::format(
      "{} does not have {} of the classes of these images ({}): they get the labels from {} on; with "
      "`classes` {} "
      "they are an error",
      quoted(out), unknown.size(), some_of(unknown), there.size(), quoted(out));
}

std::vector<std::string> absent_classes(const LabelTable& labels) {
  std::vector<bool> seen(labels.classes.size());
  for (std::size_t at = 0; at < labels.rows.size() && !seen.empty(); at += 8)
    seen.at(load_u64(labels.rows, at)) = true;
  std::vector<std::string> absent;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) absent.push_back(labels.classes[i]);
  return absent;
}

}  // namespace shard::convert
