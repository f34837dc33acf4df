#include "cli/config_file.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"

#include <fmt/format.h>

#include <istream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shard::cli {
namespace {

std::string_view without_quotes(std::string_view text) {
  const bool quoted =
      text.size() >= 2 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

bool is_truth(std::string_view value) {
  for (const std::string_view known : {"true", "false", "on", "off", "yes", "no", "1", "0"}) {
    if (value == known) return true;
  }
  return false;
}

class ConfigFile : public CLI::Config {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    std::vector<CLI::ConfigItem> found;
    std::map<std::string, std::size_t> seen;  // name -> line
    std::string text;
    for (std::size_t line = 1; std::getline(in, text); ++line) {
      if (line == 1 && text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark
      const std::string_view content = trimmed(text);
      if (content.empty() || content.front() == '#' || content.front() == ';') continue;
      found.push_back(parse(content, line));
      const auto [first, fresh] = seen.emplace(found.back().name, line);
      if (!fresh) refuse(line, fmt::format("{} is already set in line {}", found.back().name, first->second));
    }
    return found;
  }

  // Only CLI11 asks for it, to print a configuration; our programs do not.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }

 private:
  [[noreturn]] void refuse(std::size_t line, const std::string& why) const {
    const CLI::Option* config = app_.get_config_ptr();
    throw CLI::ConfigError(fmt::format("{}: line {}: {}", quoted(config->as<std::string>()), line, why));
  }

  CLI::ConfigItem parse(std::string_view content, std::size_t line) const {
    const std::size_t equals = content.find('=');
    std::string_view name = trimmed(content.substr(0, equals));
    if (content.front() == '[')
      refuse(line, fmt::format("{}: there are no sections: write NAME = VALUE", content));
    if (name.starts_with("--")) name.remove_prefix(2);
    const CLI::Option* option = app_.get_option_no_throw(fmt::format("--{}", name));
    if (option == nullptr) option = app_.get_option_no_throw(std::string(name));  // IMAGES, OUT
    if (option == nullptr || name.empty() || name == "config" || !option->get_configurable()) {
      refuse(line, fmt::format("unknown option {}: names are those of --help-all, without the dashes",
                               quoted(name)));
    }
    CLI::ConfigItem item;
    item.name = name;
    if (equals == std::string_view::npos && !is_flag(*option)) {
      refuse(line, fmt::format("{} has no value: write {} = VALUE", name, name));
    }
    const std::string_view value =
        equals == std::string_view::npos ? "true" : without_quotes(trimmed(content.substr(equals + 1)));
    if (is_flag(*option) && !is_truth(value)) {
      refuse(line, fmt::format("{} = {}: expected true or false", name, value));
    }
    item.inputs.emplace_back(value);
    return item;
  }

  const CLI::App& app_;
};

}  // namespace

void add_config_file(CLI::App& app) {
  app.set_config("--config", "", R"(
      Read options from a file with lines NAME = VALUE. NAME is an option without the dashes. A line that
      starts with # is a comment. Options on the command line take precedence)")
      ->type_name("FILE");
  app.config_formatter(std::make_shared<ConfigFile>(app));
  app.allow_config_extras(false);
}

}  // namespace shard::cli
