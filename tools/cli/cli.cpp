#include "cli/cli.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/quote.hpp"
#include "cli/completion.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"

namespace shard::cli {
namespace {

// CLI11 says "A subcommand is required" to no first word, and to one that names none. Empty when that is not
// the mistake.
std::string unknown_subcommand(const CLI::App& app, int argc, const char* const* argv) {
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  if (subcommands.empty() || (argc >= 2 && argv[1][0] == '-')) return {};
  std::string names;
  for (const CLI::App* subcommand : subcommands) {
    if (argc >= 2 && subcommand->get_name() == argv[1]) return {};
    names += (names.empty() ? "" : ", ") + subcommand->get_name();
  }
  return fmt::format("{}; use one of: {}. {} SUBCOMMAND --help explains it\n",
                     argc < 2 ? "a subcommand is required" : "there is no subcommand " + quoted(argv[1]),
                     names, app.get_name());
}

// How many characters must be replaced, left out or put in (Levenshtein).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j)
      row[j + 1] = std::min({above[j + 1] + 1, row[j] + 1, above[j] + (a[i] == b[j] ? 0U : 1U)});
    std::swap(above, row);
  }
  return above.back();
}

// "there is no option "--prest"; did you mean --preset?" Empty when no option was unknown.
std::string unknown_option(const CLI::App& app) {
  const CLI::App* chosen = &app;
  for (const CLI::App* subcommand : app.get_subcommands()) chosen = subcommand;
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    std::string close;
    std::size_t least = 3;  // more is another word
    for (const CLI::Option* option : chosen->get_options())
      for (const std::string& known : option->get_lnames())
        if (const std::size_t count = edits(name, "--" + known); count < least) {
          least = count;
          close = "--" + known;
        }
    return fmt::format("there is no option {}{}{}\n", quoted(name),
                       close.empty() ? "" : "; did you mean " + close + "?",
                       close.empty() ? "; run with --help-all for those there are" : "");
  }
  return {};
}

// A pattern of names that the shell has expanded gives one argument for each file.
std::string too_many_names(const CLI::App& app) {
  const std::vector<std::string> more = app.remaining(true);
  if (app.get_option_no_throw("IMAGES") == nullptr || more.empty()) return {};
  return fmt::format(
      "{} is one argument too many: IMAGES and OUT are two. Put quotes around a pattern, "
      "'train-{{000..146}}.tar', or the shell expands it; --help explains the arguments\n",
      quoted(more.front()));
}

void add_help(CLI::App& app) {
  if (dynamic_cast<const HelpFormatter*>(app.get_formatter().get()) == nullptr)
    app.formatter(std::make_shared<HelpFormatter>());
  app.get_help_ptr()->description("Print what is used most, on one screen");
  if (app.get_help_all_ptr() == nullptr)
    app.set_help_all_flag("--help-all", "Print everything about each option");
}

void add_completion(CLI::App& app) {
  app.add_option_function<std::string>(
         "--completion",
         [&app](const std::string& shell) { throw CLI::CallForVersion(completion_script(app, shell), 0); },
         "Print a script for completion in a shell. docs/install.md says how to switch it on")
      ->type_name("bash|zsh|fish")
      ->configurable(false);
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv) {
  add_help(app);
  for (CLI::App* subcommand : app.get_subcommands([](CLI::App*) { return true; })) add_help(*subcommand);
  if (app.get_option_no_throw("--completion") == nullptr) add_completion(app);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::ostringstream out_text;
    std::ostringstream error_text;
    const int code = app.exit(error, out_text, error_text);
    if (code == 0) {
      write_out(out_text.str());
      return kExitOk;
    }
    std::string unknown = unknown_subcommand(app, argc, argv);
    if (unknown.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      unknown = unknown_option(app);
    if (unknown.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      unknown = too_many_names(app);
    const std::string message =
        fmt::format("{}: {}", app.get_name(), unknown.empty() ? error_text.str() : unknown);
    std::fwrite(message.data(), 1, message.size(), stderr);
    return kExitFailure;
  }
}

}  // namespace shard::cli
