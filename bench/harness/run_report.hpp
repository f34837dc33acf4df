// The report of a subcommand: what every one begins with, and the files it goes to.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "harness/machine.hpp"
#include "report/plot.hpp"

namespace shard::bench {

// Files; empty: none. json "-": standard output, at the end.
struct Outputs {
  std::string json, csv, plot;
};

class Report {
 public:
  // Begins with benchmark, version, command, machine and complete (false until finish()).
  Report(const std::string& benchmark, const std::string& command, const Machine& machine, Outputs outputs);
  nlohmann::ordered_json& json() noexcept { return json_; }
  // Replaces the JSON and CSV files by what there is: after each case, so that an interruption loses nothing.
  // Errors: io.
  void save() const;
  void finish(const BarChart& chart = {});  // also draws the chart; errors: those of write_chart
  bool on_stdout() const noexcept { return outputs_.json == "-"; }

 private:
  std::string text() const;
  Outputs outputs_;
  nlohmann::ordered_json json_;
};

}  // namespace shard::bench
