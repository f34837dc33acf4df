// What a report runs: the arguments of each subcommand, or why it is left out.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/temp_folder.hpp"

namespace shard::bench {

struct ReportOptions {
  std::filesystem::path folder;
  std::string images;
  std::vector<std::string> datasets, tiers, emulate;
  std::string device = "auto";
  double seconds = 0;  // of each sample; 0: by `quick`
  bool quick = false;
};

struct ReportJob {
  std::string name;
  std::vector<std::string> arguments;  // without --json; empty: left out
  std::string left_out;
  double weight = 1;  // about how many seconds it takes on two cores
};

// Images and data sets for the subcommands that need them. If none are given, they are made below the
// report's folder, and the destructor removes them.
class ReportData {
 public:
  // Errors: cancelled. Other errors go to problem().
  ReportData(const ReportOptions& options, const std::atomic<bool>& cancel,
             const std::function<void(const std::string&)>& note);
  const std::string& images() const noexcept { return images_; }  // empty: there are none
  std::uint64_t count() const noexcept { return count_; }
  const std::vector<std::string>& datasets() const noexcept { return datasets_; }  // likewise
  const std::string& problem() const noexcept { return problem_; }                 // why there are none
  const std::string& made() const noexcept { return made_; }  // a sentence on what was made; empty: nothing
  const std::filesystem::path& scratch() const noexcept { return scratch_.path(); }

 private:
  void make(const ReportOptions& options, const std::atomic<bool>& cancel,
            const std::function<void(const std::string&)>& note);
  TempFolder scratch_;
  std::string images_, problem_, made_;
  std::vector<std::string> datasets_;
  std::uint64_t count_ = 0;
};

// In the order of the page.
std::vector<ReportJob> report_jobs(const ReportOptions& options, const ReportData& data);

}  // namespace shard::bench
