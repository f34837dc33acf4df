#include "cli/help_format.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace shard::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kNameColumn = 26;
constexpr std::string_view kBetweenWords = " \n";

// The next word of `text`, which is removed from it, and what it starts.
enum class Starts : std::uint8_t { nothing, item, paragraph };
struct Word {
  std::string_view text;
  Starts starts = Starts::nothing;
};
Word next_word(std::string_view& text) {
  Word word;
  const std::size_t begin = std::min(text.find_first_not_of(kBetweenWords), text.size());
  const std::string_view before = text.substr(0, begin);
  text.remove_prefix(begin);
  word.text = text.substr(0, text.find_first_of(kBetweenWords));
  text.remove_prefix(word.text.size());
  if (before.find('\n') != before.rfind('\n'))
    word.starts = Starts::paragraph;
  else if (before.find('\n') != std::string_view::npos && word.text == "-")
    word.starts = Starts::item;
  return word;
}

// "INT in [1 - 64]" of a type name such as "UINT:INT in [1 - 64]": "1 to 64". Empty for other checks.
std::string range_of(const std::string& type) {
  const std::size_t open = type.find(" in [");
  const std::size_t dash = type.find(" - ", open);
  if (open == std::string::npos || dash == std::string::npos || !type.ends_with(']')) return {};
  const std::string low = type.substr(open + 5, dash - open - 5);
  return fmt::format("{} to {}", low, type.substr(dash + 3, type.size() - dash - 4));
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string without_brackets(const std::string& text) {
  return text.starts_with('[') && text.ends_with(']') ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  std::size_t hanging = 0;  // the further lines of an item begin under its text
  for (Word word = next_word(text); !word.text.empty(); word = next_word(text)) {
    if (word.starts != Starts::nothing) hanging = 0;
    const bool fits = column + 1 + word.text.size() <= width;
    if (!result.empty() && fits && word.starts == Starts::nothing) {
      result += ' ';
      ++column;
    } else if (!result.empty()) {
      if (word.starts == Starts::paragraph) result += '\n';
      result += '\n' + std::string(indent + hanging, ' ');
      column = hanging;
    }
    if (word.starts == Starts::item) hanging = 2;
    result += word.text;
    column += word.text.size();
  }
  return result;
}

std::string summary_of(std::string_view text) {
  const std::string line = wrap(text, std::string::npos);
  std::size_t open = 0;  // brackets
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '(') ++open;
    if (line[i] == ')' && open > 0) --open;
    const bool last = i + 1 == line.size() || line[i + 1] == ' ' || line[i + 1] == '\n';
    if (line[i] == '\n' ||
        (open == 0 && last && ((line[i] == '.' && (i == 0 || line[i - 1] != '.')) || line[i] == ';')))
      return line.substr(0, i);
  }
  return line;
}

std::string placeholder_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find(":SIZE [") != std::string::npos) return "BYTES";
  const std::string kind = type.substr(0, type.find(':'));
  if (kind == "UINT" || kind == "INT") return "N";
  // "TEXT:{a,b}": one of these words.
  if (const std::size_t open = type.find(":{"); kind == "TEXT" && open != std::string::npos) {
    std::string words = type.substr(open + 2, type.find('}', open) - open - 2);
    std::replace(words.begin(), words.end(), ',', '|');
    return words;
  }
  return kind == "FLOAT" ? "X" : kind;
}

void show_in_help(CLI::App& app, std::vector<std::string> names) {
  app.formatter(std::make_shared<HelpFormatter>(std::move(names)));
}

HelpFormatter::HelpFormatter(std::vector<std::string> shown) : shown_(std::move(shown)) {
  column_width(kNameColumn);
}

std::string HelpFormatter::row(const std::string& name, const std::string& text) const {
  const std::size_t width = get_column_width();
  std::string line = "  " + name;
  const bool own_line = line.size() + 2 > width;
  line += own_line ? '\n' + std::string(width, ' ') : std::string(width - line.size(), ' ');
  return line + wrap(text, kWidth - width, width) + '\n';
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = full_help(app, name);
  if (mode != CLI::AppFormatMode::All) {
    const bool fits = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) <= kScreenLines;
    return fits ? text : short_help(app, name);
  }
  for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; }))
    text += fmt::format("\n{:-<{}}\n\n{}", "", kWidth,
                        sub->get_formatter()->make_help(sub, name + " " + sub->get_name(), mode));
  return text;
}

std::string HelpFormatter::full_help(const CLI::App* app, const std::string& name) const {
  return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, name, CLI::AppFormatMode::Normal),
                                       "\n\n\n", "\n\n");
}

std::string HelpFormatter::short_help(const CLI::App* app, const std::string& name) const {
  const std::string text = wrap(app->get_description(), kWidth);
  std::string help = text.substr(0, text.find("\n\n")) + "\n\n" + make_usage(app, name) + '\n';
  const auto is_shown = [this](const CLI::Option* option) {
    return shown_.empty() || std::any_of(shown_.begin(), shown_.end(), [option](const std::string& shown) {
             return option->check_name(shown);
           });
  };
  const auto add = [&](const CLI::Option* option, bool is_positional) {
    std::string said = summary_of(option->get_description());
    const std::string standard = without_brackets(option->get_default_str());
    if (!standard.empty()) said += " (default: " + standard + ")";
    help += row(make_option_name(option, is_positional) + make_option_opts(option), said);
  };
  for (const CLI::Option* option : app->get_options())
    if (option->get_positional()) add(option, true);
  std::size_t left_out = 0;
  for (const CLI::Option* option : app->get_options()) {
    if (!option->nonpositional() || option->get_group().empty()) continue;
    if (is_shown(option))
      add(option, false);
    else
      ++left_out;
  }
  help += make_subcommands(app, CLI::AppFormatMode::Normal);
  return help + fmt::format("\n{} --help-all {}\n", name,
                            left_out > 0 ? fmt::format("explains these and {} more options", left_out)
                                         : std::string("says more about each"));
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrap(app->get_description(), kWidth) + "\n\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string text = wrap(app->get_footer(), kWidth);
  return text.empty() ? text : text + '\n';
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  const std::string text = wrap(sub->get_description(), std::string::npos);
  return row(sub->get_display_name(true), text.substr(0, text.find('\n')));
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return row(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  const std::string name = CLI::Formatter::make_option_name(option, is_positional);
  return name.substr(0, name.find('{'));  // of "--no-verify{false}"
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0 || option->get_positional()) return {};
  const bool list = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return " " + placeholder_of(*option) + (list ? "..." : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::vector<std::string> notes;
  if (option->get_required() && !option->get_positional()) notes.emplace_back("required");
  const std::string standard = without_brackets(option->get_default_str());
  if (!standard.empty()) notes.push_back("default: " + standard);
  const std::string range = range_of(option->get_type_name());
  if (!range.empty()) notes.push_back(range);
  if (!option->get_needs().empty()) notes.push_back("needs " + names_of(option->get_needs()));
  if (!option->get_excludes().empty()) notes.push_back("not with " + names_of(option->get_excludes()));
  const std::string text = option->get_description();
  return notes.empty() ? text : fmt::format("{} ({})", text, fmt::join(notes, "; "));
}

}  // namespace shard::cli
