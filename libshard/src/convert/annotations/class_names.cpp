// The names of classes: a list that is given, of a file, of another data set.
#include "shard/convert/class_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "base/text/json.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "base/text/words.hpp"
#include "convert/annotations/class_labels.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxClassFileBytes = std::uint64_t{64} << 20U;
constexpr std::size_t kMaxClasses = 1'000'000;

[[noreturn]] void refuse_names(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

constexpr std::string_view kOneNameALine =
    "give a file with one name a line; of a YAML file, the list under names";

bool is_structured_file(const fs::path& path) {
  const std::string extension = ascii_lower(path.extension().native());
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

// Whether a line is one of YAML or JSON: "0: person", "nc: 80", "names:", "- person", "['person', 'car']",
// "{". Names like "Alien: Covenant" are not.
bool is_structured_line(std::string_view line) {
  constexpr std::string_view kKey = "abcdefghijklmnopqrstuvwxyz_0123456789";
  line = trimmed(line, " \t");
  if (line == "[" || line == "{" || line.starts_with("- ")) return true;
  if ((line.starts_with('[') && line.ends_with(']')) || (line.starts_with('{') && line.ends_with('}')))
    return true;
  const std::size_t key = std::min(line.find_first_not_of(kKey), line.size());
  const std::string_view rest = line.substr(key);
  return key != 0 && (rest == ":" || rest.starts_with(": ") || rest.starts_with(":\t"));
}

}  // namespace

void check_class_names(const std::vector<std::string>& classes) {
  std::map<std::string_view, std::size_t> seen;
  if (classes.size() > kMaxClasses)
    refuse_names(fmt::format("`classes` has {} names: at most {}", classes.size(), kMaxClasses));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].empty()) refuse_names(fmt::format("`classes` has an empty name, for the label {}", i));
    if (classes[i].find('\0') != std::string::npos)
      refuse_names(fmt::format("`classes` has a zero byte in {}, the name of label {}: remove it",
                               quoted(classes[i]), i));
    const auto [at, added] = seen.emplace(classes[i], i);
    if (!added)
      refuse_names(
          fmt::format("`classes` has {} twice, for the labels {} and {}", quoted(classes[i]), at->second, i));
  }
}

std::vector<std::string> names_in_file(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxClassFileBytes);
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  std::string_view text = without_byte_order_mark(as_text(bytes));
  const auto refuse = [&](const std::string& why) { refuse_names(fmt::format("{}: {}", quoted(path), why)); };
  if (is_structured_file(path)) refuse(fmt::format("it is not a list of names: {}", kOneNameALine));
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.remove_suffix(1);
    if (line.empty() && text.empty()) break;
    if (line.empty())
      refuse(
          fmt::format("line {} is empty: it must be the name of class {}", names.size() + 1, names.size()));
    if (!is_utf8(line) || line.find('\0') != std::string_view::npos)
      refuse(fmt::format("line {} is not UTF-8 text", names.size() + 1));
    if (is_structured_line(line))
      refuse(fmt::format("line {} is {}, a line of YAML or JSON: {}", names.size() + 1, quoted_excerpt(line),
                         kOneNameALine));
    if (!seen.insert(line).second) refuse(fmt::format("it has {} twice", quoted_excerpt(line)));
    if (names.size() == kMaxClasses) refuse(fmt::format("more than {} names", kMaxClasses));
    names.emplace_back(line);
  }
  if (names.empty()) refuse("it has no names: give one a line");
  return names;
}

namespace {

// The data set that `from` names. Empty: it is a file of names.
fs::path dataset_of(const fs::path& from) {
  std::error_code error;
  const fs::path folder = from.filename() == kDatasetFile ? from.parent_path() / "" : from;
  const bool is_file =
      !is_remote(folder) && parse_dataset_path(folder).selection.empty() && !fs::is_directory(folder, error);
  return is_file ? fs::path() : folder;
}

// The strings of a list of strings (category_list()).
class StringList final : public JsonHandler {
 public:
  void null() override { refuse(); }
  void boolean(bool) override { refuse(); }
  void unsigned_integer(std::uint64_t) override { refuse(); }
  void other_number(std::string_view) override { refuse(); }
  void string(std::string&& value) override { strings.push_back(std::move(value)); }
  void begin_object() override { refuse(); }
  void key(std::string&&) override { refuse(); }
  void end_object() override {}
  void begin_array() override {
    if (depth_++ != 0) refuse();
  }
  void end_array() override {}

  std::vector<std::string> strings;

 private:
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::corrupt, "its recorded categories are not a list of names");
  }
  int depth_ = 0;
};

}  // namespace

std::vector<std::string> read_box_classes(const fs::path& from) {
  const fs::path folder = dataset_of(from);
  if (folder.empty()) return names_in_file(from);
  const DatasetInfo info = Dataset::open(folder).info();
  const auto recorded = info.provenance.find("categories");
  if (recorded == info.provenance.end())
    refuse_names(
        fmt::format("{} has no categories of objects: give a data set that was made with `coco`, `yolo` or "
                    "`voc` and names, or a file with a name a line",
                    quoted(from)));
  StringList list;
  parse_json(recorded->second, list, "categories");
  return list.strings;
}

std::vector<std::string> read_class_names(const fs::path& from) {
  const fs::path folder = dataset_of(from);
  if (folder.empty()) return names_in_file(from);
  std::vector<std::string> names = Dataset::open(folder).info().classes;
  if (names.empty())
    refuse_names(
        fmt::format("{} has numbers for labels and no names of classes: give another data set, or a file "
                    "with a name a line",
                    quoted(from)));
  for (std::string& name : names) name = unescape_key(name);
  return names;
}

}  // namespace shard::convert
