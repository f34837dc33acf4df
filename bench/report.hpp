// The JSON report of a subcommand: what every one begins with, and where it goes.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "machine.hpp"

namespace shard::bench {

class Report {
 public:
  // `file`: empty: none; "-": standard output, at the end. Begins with benchmark, version, command, machine
  // and complete (false until finish()).
  Report(const std::string& benchmark, const std::string& command, const Machine& machine, std::string file);
  nlohmann::ordered_json& json() noexcept { return json_; }
  // Replaces the file by what there is: after each case, so that an interruption loses nothing. Errors: io.
  void save() const;
  void finish();  // errors: io
  bool on_stdout() const noexcept { return file_ == "-"; }

 private:
  std::string text() const;
  std::string file_;
  nlohmann::ordered_json json_;
};

}  // namespace shard::bench
