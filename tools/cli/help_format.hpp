// How --help looks. Help texts are plain paragraphs, so that they can be raw string literals, indented like
// the code around them: the formatter joins their lines and wraps them. A blank line separates paragraphs,
// and a line that starts with "- " is an item of a list.
//
// --help fits on one screen. Where all of it has more than kScreenLines lines, --help shows the first
// sentence of each text, and of the options those that show_in_help() names; --help-all shows everything.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shard::cli {

// `text` in lines of at most `width` columns; longer words stay whole. All lines but the first are indented
// by `indent` spaces, which do not count as columns. No line feed at the end.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

inline constexpr std::size_t kScreenLines = 40;

// The first sentence of `text` on one line, without its full stop. A semicolon ends it, too.
std::string summary_of(std::string_view text);

// What the value of an option may be: "N" for whole numbers, "BYTES" for sizes, "train|eval".
std::string placeholder_of(const CLI::Option& option);

// The options of `app` that --help shows where not all of them fit: "--preset". By default all.
void show_in_help(CLI::App& app, std::vector<std::string> names);

// An option is shown as its names and a placeholder for its value. Default, range and dependencies follow its
// description in parentheses. The list of subcommands has the first paragraph of each description.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::vector<std::string> shown = {});

  // Normal: at most a screen, as above. All: everything, of subcommands too.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;

 private:
  std::string full_help(const CLI::App* app, const std::string& name) const;
  std::string short_help(const CLI::App* app, const std::string& name) const;
  std::string row(const std::string& name, const std::string& text) const;

  std::vector<std::string> shown_;
};

}  // namespace shard::cli
