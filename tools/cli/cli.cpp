#include "cli/cli.hpp"

#include <cstdio>
#include <memory>
#include <sstream>

#include "base/text/quote.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"

namespace shard::cli {
namespace {

// CLI11 says "A subcommand is required" to a first word that names none. Empty when that is not the mistake.
std::string unknown_subcommand(const CLI::App& app, int argc, const char* const* argv) {
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  if (subcommands.empty() || argc < 2 || argv[1][0] == '-') return {};
  std::string names;
  for (const CLI::App* subcommand : subcommands) {
    if (subcommand->get_name() == argv[1]) return {};
    names += (names.empty() ? "" : ", ") + subcommand->get_name();
  }
  return fmt::format("there is no subcommand {}; use one of: {}. {} SUBCOMMAND --help explains it\n",
                     quoted(argv[1]), names, app.get_name());
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv) {
  const auto formatter = std::make_shared<HelpFormatter>();
  app.formatter(formatter);
  for (CLI::App* subcommand : app.get_subcommands([](CLI::App*) { return true; }))
    subcommand->formatter(formatter);
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
    const std::string unknown = unknown_subcommand(app, argc, argv);
    const std::string message =
        fmt::format("{}: {}", app.get_name(), unknown.empty() ? error_text.str() : unknown);
    std::fwrite(message.data(), 1, message.size(), stderr);
    return kExitFailure;
  }
}

}  // namespace shard::cli
