#include "common/cli.hpp"

#include <cstdio>
#include <sstream>

#include "common/output.hpp"
#include "common/run_main.hpp"

namespace shard::cli {

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv) {
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
    const std::string message = fmt::format("{}: {}", app.get_name(), error_text.str());
    std::fwrite(message.data(), 1, message.size(), stderr);
    return kExitFailure;
  }
}

}  // namespace shard::cli
