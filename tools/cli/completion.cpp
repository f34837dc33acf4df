#include "cli/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/text/quote.hpp"
#include "cli/help_format.hpp"
#include "shard/error.hpp"

namespace shard::cli {
namespace {

// What stands behind an option: nothing (a switch), one of some words, a file, a folder, or something that no
// script can guess.
struct Value {
  enum class Kind : std::uint8_t { none, words, file, folder, other };
  Kind kind = Kind::none;
  std::vector<std::string> words{};
};

bool is_word(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") == std::string_view::npos;
}

// From the placeholder: "original|N", "FILE.json", "DIR[,KEY=VALUE...]".
Value value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};  // a switch
  std::string choices = placeholder_of(option);
  // "NAME:{a,b}": a check that knows the words.
  const std::string type = option.get_type_name();
  if (const std::size_t open = type.find(":{"); open != std::string::npos) {
    choices = type.substr(open + 2, type.find('}', open) - open - 2);
    std::replace(choices.begin(), choices.end(), ',', '|');
  }
  Value value{Value::Kind::other};
  for (std::string part : CLI::detail::split(choices, '|')) {
    part = part.substr(0, part.find('['));
    if (is_word(part)) value.words.push_back(part);
    if (part == "DIR") value.kind = Value::Kind::folder;
    if (part.starts_with("FILE") || part == "PATH") value.kind = Value::Kind::file;
  }
  if (value.kind == Value::Kind::other && !value.words.empty()) value.kind = Value::Kind::words;
  return value;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* one) { return one->nonpositional(); });
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "-j", "--jobs"; of "!--no-verify{false}" "--no-verify".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string function_name(const CLI::App& app) { return "_" + app.get_name(); }

// In single quotes, for any of the three shells; fish takes \' inside of them.
std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// ---------------------------------------------------------------------------------------------------- bash

void add_bash_values(std::string& script, const CLI::App& app, const std::string& command) {
  for (const CLI::Option* option : options_of(app)) {
    const Value value = value_of(*option);
    if (value.kind == Value::Kind::none) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : names_of(*option)) patterns.push_back(command + ":" + name);
    std::string what = "kind=other";
    if (value.kind == Value::Kind::words)
      what = fmt::format("kind=words words={}", in_quotes(fmt::format("{}", fmt::join(value.words, " "))));
    if (value.kind == Value::Kind::file) what = "kind=file";
    if (value.kind == Value::Kind::folder) what = "kind=folder";
    script += fmt::format("    {}) {} ;;\n", fmt::join(patterns, "|"), what);
  }
}

std::string all_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(app))
    for (const std::string& name : names_of(*option))
      if (name.starts_with("--")) names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}

// bash divides words at '=' too: "--preset=tr" is --preset, = and tr.
std::string bash_script(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* sub : subcommands_of(app)) commands.push_back(sub->get_name());
  std::string script = fmt::format(R"(# Completion of {0} in bash, made by {0} --completion bash.
{1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= options= kind= words= i
  COMPREPLY=()
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
)",
                                   app.get_name(), function_name(app));
  if (!commands.empty())
    script += fmt::format(R"(  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
    {}) command=${{COMP_WORDS[i]}}; break ;;
    esac
  done
)",
                          fmt::join(commands, "|"));
  script += "  case $command in\n";
  script += fmt::format("    '') options={} ;;\n", in_quotes(all_names(app)));
  for (const CLI::App* sub : subcommands_of(app))
    script += fmt::format("    {}) options={} ;;\n", sub->get_name(), in_quotes(all_names(*sub)));
  script += "  esac\n  case $command:$before in\n";
  add_bash_values(script, app, "");
  for (const CLI::App* sub : subcommands_of(app)) add_bash_values(script, *sub, sub->get_name());
  script += fmt::format(
      R"(  esac
  if [[ -z $kind ]]; then
    if [[ $word == -* ]]; then
      kind=words words=$options
    elif [[ -z $command && -n {1} ]]; then
      kind=words words={1}
    else
      kind=file
    fi
  fi
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
  esac
}}
complete -F {2} {0}
)",
      app.get_name(), in_quotes(fmt::format("{}", fmt::join(commands, " "))), function_name(app));
  return script;
}

// ----------------------------------------------------------------------------------------------------- zsh

// A text inside of [...] of _arguments, or behind the colon of _describe.
std::string for_zsh(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_action(const Value& value) {
  switch (value.kind) {
    case Value::Kind::words:
      return fmt::format("({})", fmt::join(value.words, " "));
    case Value::Kind::file:
      return "_files";
    case Value::Kind::folder:
      return "_files -/";
    case Value::Kind::none:
    case Value::Kind::other:
      break;
  }
  return " ";
}

// The lines of an _arguments call: options, then files for what else stands there.
std::string zsh_arguments(const CLI::App& app, const std::string& indent, const std::string& flags,
                          const std::string& rest) {
  std::string lines = "_arguments " + flags;
  const auto add = [&](const std::string& spec) { lines += " \\\n" + indent + "  " + in_quotes(spec); };
  for (const CLI::Option* option : options_of(app)) {
    const Value value = value_of(*option);
    const bool several = option->get_expected_max() > 1;
    for (const std::string& name : names_of(*option)) {
      std::string spec = (several ? "*" : "") + name;
      if (value.kind != Value::Kind::none) spec += name.starts_with("--") ? "=" : "+";
      spec += "[" + for_zsh(summary_of(option->get_description())) + "]";
      if (value.kind != Value::Kind::none)
        spec += ":" + for_zsh(placeholder_of(*option)) + ":" + zsh_action(value);
      add(spec);
    }
  }
  return lines + " \\\n" + indent + "  " + rest + "\n";
}

std::string zsh_script(const CLI::App& app) {
  std::string script =
      fmt::format("#compdef {0}\n# Completion of {0} in zsh, made by {0} --completion zsh.\n{1}() {{\n",
                  app.get_name(), function_name(app));
  if (subcommands_of(app).empty()) {
    script += "  " + zsh_arguments(app, "  ", "-S", "'*:file:_files'");
  } else {
    script += "  local context state state_descr line\n  typeset -A opt_args\n  ";
    script += zsh_arguments(app, "  ", "-C -S", "'1:subcommand:->subcommand' '*::argument:->argument'");
    script += "  case $state in\n    subcommand)\n      local -a subcommands=(\n";
    for (const CLI::App* sub : subcommands_of(app))
      script += fmt::format(
          "        {}\n",
          in_quotes(fmt::format("{}:{}", sub->get_name(), for_zsh(summary_of(sub->get_description())))));
    script +=
        "      )\n      _describe -t commands subcommand subcommands\n      ;;\n    argument)\n"
        "      case $words[1] in\n";
    for (const CLI::App* sub : subcommands_of(app))
      script += fmt::format("        {}) {}          ;;\n", sub->get_name(),
                            zsh_arguments(*sub, "          ", "-S", "'*:file:_files'"));
    script += "      esac\n      ;;\n  esac\n";
  }
  // Sourced, it announces itself; from a folder of $fpath it is the body of the function, and runs.
  return script + fmt::format(R"(}}
if [[ $funcstack[1] == {0} ]]; then
  {0} "$@"
else
  compdef {0} {1}
fi
)",
                              function_name(app), app.get_name());
}

// ---------------------------------------------------------------------------------------------------- fish

// In single quotes, where fish takes \' and \\.
std::string for_fish(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

void add_fish_options(std::string& script, const CLI::App& app, const std::string& start) {
  for (const CLI::Option* option : options_of(app)) {
    std::string line = start;
    for (const std::string& name : option->get_snames()) line += " -s " + name;
    for (const std::string& name : option->get_lnames()) line += " -l " + name;
    const Value value = value_of(*option);
    switch (value.kind) {
      case Value::Kind::none:
        break;
      case Value::Kind::words:
        line += fmt::format(" -x -a {}", for_fish(fmt::format("{}", fmt::join(value.words, " "))));
        break;
      case Value::Kind::file:
        line += " -r -F";
        break;
      case Value::Kind::folder:
        line += " -x -a '(__fish_complete_directories)'";
        break;
      case Value::Kind::other:
        line += " -x";
        break;
    }
    script += fmt::format("{} -d {}\n", line, for_fish(summary_of(option->get_description())));
  }
}

std::string fish_script(const CLI::App& app) {
  const std::string complete = "complete -c " + app.get_name();
  std::string script =
      fmt::format("# Completion of {0} in fish, made by {0} --completion fish.\n", app.get_name());
  if (subcommands_of(app).empty()) {
    add_fish_options(script, app, complete);
    return script;
  }
  script += complete + " -n __fish_use_subcommand -f\n";
  add_fish_options(script, app, complete + " -n __fish_use_subcommand");
  for (const CLI::App* sub : subcommands_of(app)) {
    script += fmt::format("{} -n __fish_use_subcommand -a {} -d {}\n", complete, sub->get_name(),
                          for_fish(summary_of(sub->get_description())));
    add_fish_options(script, *sub,
                     fmt::format("{} -n '__fish_seen_subcommand_from {}'", complete, sub->get_name()));
  }
  return script;
}

}  // namespace

std::string completion_script(const CLI::App& app, std::string_view shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  if (shell == "fish") return fish_script(app);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--completion {}: expected bash, zsh or fish", quoted(shell)));
}

}  // namespace shard::cli
