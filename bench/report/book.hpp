// The folder of a report: NAME.json of each subcommand, and the page that is made of them.
#pragma once

#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/sections.hpp"

namespace shard::bench {

class ReportBook {
 public:
  // `command`: what made the page. Errors: invalid_argument: there is no folder, or an index.html that no
  // report made.
  ReportBook(std::filesystem::path folder, std::string command);
  // Errors: invalid_argument: there is anything else in it, or it is no folder; io.
  void make_folder() const;

  std::filesystem::path page() const;
  std::filesystem::path json_of(const std::string& part) const;
  // Why there is nothing, or not all, and what was run.
  void set_problem(const std::string& part, std::string problem, std::string command = {});
  void set_fact(std::string name, std::string value);
  // Writes the page anew of what is there. Errors: io.
  void save();
  // Of the page that was saved last, "NAME: why", those that are not complete.
  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  PageSection section(const std::string& part);
  void add_machine(const ReportJson& json, const std::string& part);

  struct Seen {  // while a page is made
    ReportJson machine;
    std::string version, gpus, others;
    std::time_t latest = 0;
  };
  std::filesystem::path folder_;
  std::map<std::string, std::string> problems_, commands_;
  std::vector<std::pair<std::string, std::string>> facts_;
  std::vector<std::string> missing_;
  Seen seen_;
};

}  // namespace shard::bench
