// The options of a conversion that people write as text: on a command line, in a file, in Python.
//
// Each is a row of a table: shardify's option with its help, Python's keyword, the check and what it sets
// are made from it. A new one is a member of Options, its row, and a row in docs/shardify.md (and in Python
// its type, in _convert/options.py).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shard/convert/options.hpp"
#include "shard/error.hpp"

namespace shard::convert {

struct TextOption {
  std::string_view name;   // in messages and in Python: "box_classes"
  std::string_view flag;   // on a command line: "--box-classes"
  std::string_view group;  // of shardify's help
  // What its value is: "N|WxH"; words that may be given are written small. A switch, whose value is "true",
  // has none.
  std::string_view value;
  std::string_view by_default;  // empty: nothing
  std::string_view help;
  bool several = false;  // may be given several times
  // Throws invalid_argument, naming the option (`crop`), the value and what is expected.
  void (*set)(Options& options, std::string_view name, const std::string& value) = nullptr;
  bool common = false;  // in shardify's --help, which has one screen; --help-all has all
};

// All but IMAGES, OUT and those by which processes share the work. In the order of the help.
std::span<const TextOption> text_options();

// Values by the names of options. An empty value is none.
class TextOptions {
 public:
  TextOptions() = default;
  TextOptions(std::initializer_list<std::pair<const std::string_view, std::string>> values);
  // An option that may be given several times gets one more value. Throws invalid_argument if there is no
  // such option.
  void add(std::string_view name, std::string value);
  bool has(std::string_view name) const { return values_.contains(name); }
  const std::vector<std::string>& values(std::string_view name) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// Sets the members of `options` that these values stand for: the preset first, then what is given besides.
// Errors: those of TextOption::set; invalid_argument for options that exclude or need each other.
void apply(const TextOptions& text, Options& options);

}  // namespace shard::convert
