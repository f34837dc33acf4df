// The folder of a report: NAME.json of each subcommand, and the page that is made of them.
#pragma once

#include <array>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sections.hpp"

namespace shard::bench {

struct ReportPart {
  const char* name;      // of the subcommand; its JSON is NAME.json
  const char* operands;  // which arguments it needs
  PageSection (*section)(const nlohmann::ordered_json& json);
};
// In the order of the page.
inline constexpr std::array<ReportPart, 10> kReportParts{{
    {"device", " PATH", device_section},
    {"convert", " IMAGES", convert_section},
    {"decode", " IMAGES", decode_section},
    {"tiers", " DATASET --images IMAGES", tiers_section},
    {"pipeline", " DATASET --images IMAGES", pipeline_section},
    {"load", " DATASET", load_section},
    {"upload", "", upload_section},
    {"memory", " DATASET", memory_section},
    {"write", " PATH", write_section},
    {"matmul", "", matmul_section},
}};

class ReportBook {
 public:
  // `command`: the command line that makes the page. Errors: invalid_argument (there is no folder, or it has
  // an index.html that no report made).
  ReportBook(std::filesystem::path folder, std::string command);
  // Errors: invalid_argument (there are other files in it, or it is not a folder), io.
  void make_folder() const;

  std::filesystem::path page() const;
  std::filesystem::path json_of(const std::string& part) const;
  // Sets why a part has no results, or not all of them, and what was run.
  void set_problem(const std::string& part, std::string problem, std::string command = {});
  void set_fact(std::string name, std::string value);
  // Writes the page again, from the present JSON files. Errors: io.
  void save();
  // The incomplete parts of the page that was saved last, as "NAME: why".
  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  PageSection section(const ReportPart& part);
  void add_machine(const nlohmann::ordered_json& json, const std::string& part);

  struct Seen {  // while a page is made
    nlohmann::ordered_json machine;
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
