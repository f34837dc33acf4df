// Subcommands, and options that several of them have. The variables must live until the parser has run.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "harness/report.hpp"
#include "report/chart_file.hpp"

namespace shard::bench {

struct Subcommands {
  CLI::App& app;
  std::function<int()>& chosen;  // set when a subcommand was chosen
  std::string command_line;      // kept in the JSON report

  // `run` gets the arguments after the parser has filled them in.
  template <class Arguments>
  CLI::App& add(const char* name, const char* help, std::shared_ptr<Arguments> arguments,
                int (*run)(Arguments&, const std::string& command_line)) const {
    CLI::App* const added = app.add_subcommand(name, help);
    added->callback([&chosen_one = chosen, arguments, run, line = command_line] {
      chosen_one = [arguments, run, line] { return run(*arguments, line); };
    });
    return *added;
  }
};

inline void add_repeat_option(CLI::App& app, unsigned& repeat, const char* of = "Samples of each row") {
  app.add_option("--repeat", repeat, of)->check(CLI::Range(1, 1000));
}

inline void add_seconds_option(CLI::App& app, double& seconds,
                               const char* of = "Length of a sample, at least") {
  app.add_option("--seconds", seconds, of)->check(CLI::Range(0.0, 600.0));
}

inline void add_device_option(CLI::App& app, std::string& device, const char* what = "host or cuda") {
  app.add_option("--device", device, what)->type_name("host|cuda")->default_str("cuda, if there is one");
}

// 0: one per core.
inline void add_threads_option(CLI::App& app, unsigned& threads, const char* what = "Threads that decode",
                               int most = 64, const char* name = "--threads") {
  CLI::Option* const option = app.add_option(name, threads, what)->check(CLI::Range(1, most));
  if (threads == 0) option->default_str("one per core");
}

template <class Number>
CLI::Option* add_size_option(CLI::App& app, const char* name, Number& bytes, const char* what) {
  return app.add_option(name, bytes, what)->transform(CLI::AsSizeValue(false));
}

template <class Number>
void lower_to(Number& value, Number most) {
  value = std::min(value, most);
}

// Comes after the options that `lower` changes: the parser sets them in the order in which they were added.
inline void add_quick_option(CLI::App& app, const std::string& what, std::function<void()> lower) {
  app.add_flag_callback("--quick", std::move(lower), what);
}

// At most 3 samples of at most `most_seconds`, and what `also` lowers.
inline void add_quick_option(CLI::App& app, unsigned& repeat, double& seconds, double most_seconds,
                             const std::string& also_what = "", std::function<void()> also = {}) {
  add_quick_option(app, fmt::format("Take at most 3 samples of {} s each{}", most_seconds, also_what),
                   [&repeat, &seconds, most_seconds, also = std::move(also)] {
                     lower_to(repeat, 3U);
                     lower_to(seconds, most_seconds);
                     if (also) also();
                   });
}

inline void add_json_option(CLI::App& app, std::string& path,
                            const char* what = "Write every sample as JSON") {
  app.add_option("--json", path, std::string(what) + "; - means standard output")->type_name("FILE");
}

// Adds --json, --csv and, if the subcommand draws a chart, --plot, whose file name is checked before any
// work.
enum class Chart : bool { none, bars };
inline void add_output_options(CLI::App& app, Outputs& outputs,
                               const char* what = "Write every sample as JSON", Chart chart = Chart::bars) {
  add_json_option(app, outputs.json, what);
  app.add_option("--csv", outputs.csv, "Write the rows of the table (medians) as CSV")->type_name("FILE");
  if (chart == Chart::bars)
    app.add_option("--plot", outputs.plot, "Draw a chart")
        ->type_name("FILE.svg")
        ->each([](const std::string& file) { check_chart_file(file); });
}

}  // namespace shard::bench
