// What every measuring subcommand does besides measuring: it records the machine, shows progress, writes the
// report as JSON and CSV after each step, and at the end prints it as text and draws a chart.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "harness/step_estimate.hpp"
#include "report/page.hpp"

namespace shard::bench {

// Files; empty: none. json "-": standard output, at the end.
struct Outputs {
  std::string json, csv, plot;
};

// Whether a case has a problem, because of which it was left out.
template <class Cases>
bool any_problem(const Cases& cases) {
  return std::any_of(cases.begin(), cases.end(), [](const auto& one) { return !one.problem.empty(); });
}

class Report {
 public:
  using Json = nlohmann::ordered_json;
  // The JSON starts with benchmark, version, command, machine and complete (false until finish()). `step`:
  // what the progress line counts.
  Report(const std::string& benchmark, const std::string& command, Outputs outputs,
         std::string step = "repeat");
  Json& json() noexcept { return json_; }
  StepProgress& progress() noexcept { return progress_; }
  // Writes the present results to the JSON and CSV files. Called after each case, so that an interruption
  // loses nothing. Errors: io.
  void save() const;
  // The same, and shows that `done` of `count` steps are done.
  void save(std::size_t done, std::size_t count, std::string_view stage = {});
  // Prints `before`, the section's text and `after`, or the JSON; saves it as complete; draws the section's
  // first chart. Errors: io, those of write_chart.
  void finish(PageSection (*section)(const Json&), const std::string& before = {},
              const std::string& after = {});

 private:
  std::string text() const;
  Outputs outputs_;
  Json json_;
  StepProgress progress_;
};

}  // namespace shard::bench
