#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.hpp"
#include "common/output.hpp"
#include "common/progress.hpp"
#include "common_options.hpp"
#include "interrupt.hpp"
#include "report_child.hpp"
#include "report_jobs.hpp"
#include "report_sections.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPageFile = "index.html";

struct Arguments {
  ReportOptions options;
  bool from_json = false;
};

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string time_text(std::time_t when) {
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

// Any row or part that was left out, at any depth.
bool lacks(const ReportJson& json) {
  if (json.is_array()) return std::any_of(json.begin(), json.end(), lacks);
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items()) {
    if (name == "problem" && value.is_string() && !value.get<std::string>().empty()) return true;
    if (name == "problems" && value.is_array() && !value.empty()) return true;
    if (name == "complete" && value.is_boolean() && !value.get<bool>()) return true;
    if (lacks(value)) return true;
  }
  return false;
}

class ReportRun {
 public:
  ReportRun(Arguments& arguments, std::string command)
      : options_(arguments.options), command_(std::move(command)) {
    check_folder(arguments.from_json);
  }

  int from_json() {
    save();
    return end();
  }

  int measure() {
    fs::create_directories(options_.folder);
    for (const char* part : kReportParts) fs::remove(json_of(part));
    const InterruptGuard interrupt;
    try {
      run_jobs();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled) throw;
      for (const char* part : kReportParts)
        if (!done_[part]) problems_[part] = "not measured: interrupted";
      save();
      throw Error(ErrorCode::cancelled,
                  fmt::format("stopped; {} has what was measured until then", page().string()));
    }
    progress_.finish();
    save();
    return end();
  }

 private:
  fs::path page() const { return options_.folder / kPageFile; }
  fs::path json_of(const std::string& part) const { return options_.folder / (part + ".json"); }

  // What somebody else put there stays.
  void check_folder(bool only_page) const {
    const std::string shown = escape_key(options_.folder.string());
    if (!fs::exists(options_.folder) && only_page)
      throw Error(ErrorCode::not_found, fmt::format("{}: no such folder", shown));
    if (fs::exists(options_.folder) && !fs::is_directory(options_.folder))
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: it is no folder", shown));
    if (fs::exists(page()) && read_text(page()).find(kPageGenerator) == std::string::npos)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: its {} is not one of shardbench report: name another folder", shown, kPageFile));
    if (only_page || !fs::exists(options_.folder)) return;
    for (const auto& entry : fs::directory_iterator(options_.folder)) {
      const std::string name = entry.path().filename().string();
      const bool ours = name == kPageFile ||
                        std::any_of(kReportParts.begin(), kReportParts.end(),
                                    [&](const char* part) { return name == part + std::string(".json"); });
      if (!ours)
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format(
                "{}: it holds '{}', which no report made: name a new folder, an empty one, or that of "
                "an earlier report",
                shown, escape_key(name)));
    }
  }

  void run_jobs() {
    const ReportData data(options_, interrupt_flag(),
                          [&](const std::string& text) { progress_.update(text); });
    made_ = data.made();
    const std::vector<ReportJob> jobs = report_jobs(options_, data);
    double rest = 0;
    for (const ReportJob& job : jobs) rest += job.arguments.empty() ? 0 : job.weight;
    const auto begin = std::chrono::steady_clock::now();
    double past = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const ReportJob& job = jobs[i];
      if (job.arguments.empty()) {
        problems_[job.name] = job.left_out;
        done_[job.name] = true;
        continue;
      }
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const double pace = past > 10 ? spent / past : 1;  // of this machine against the one of the weights
      const std::string where = fmt::format("{} of {}, {}, about {} left", i + 1, jobs.size(), job.name,
                                            cli::human_duration(rest * pace));
      progress_.update(where);
      run_job(job, where);
      rest -= job.weight;
      past += job.weight;
      save();
    }
  }

  void run_job(const ReportJob& job, const std::string& where) {
    std::vector<std::string> arguments = job.arguments;
    arguments.insert(arguments.end(), {"--json", json_of(job.name).string()});
    const ChildEnd end = run_child(arguments, interrupt_flag(),
                                   [&](const std::string& line) { progress_.update(where + ": " + line); });
    if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
    done_[job.name] = true;
    if (end.exit_code == 0) return;
    incomplete_ = true;
    if (end.exit_code == 1 && fs::exists(json_of(job.name))) return;  // the page has its sentences
    problems_[job.name] = fmt::format("failed with exit code {}: {}", end.exit_code,
                                      end.last_line.empty() ? "it said nothing" : end.last_line);
    commands_[job.name] = fmt::format("shardbench {}", fmt::join(job.arguments, " "));
  }

  PageSection section(const std::string& part) {
    PageSection section;
    const fs::path file = json_of(part);
    struct stat facts {};
    if (::stat(file.c_str(), &facts) != 0) {
      section.id = part;
      section.title = section_title(part);
      section.command = commands_[part];
      section.problems.push_back(!problems_[part].empty()
                                     ? problems_[part]
                                     : fmt::format("There is no {}.json: shardbench {} --json {} makes it.",
                                                   part, part, file.string()));
      return section;
    }
    latest_ = std::max(latest_, facts.st_mtime);
    try {
      const ReportJson json = ReportJson::parse(read_text(file));
      section = section_of(part, json);
      if (lacks(json)) incomplete_ = true;
      add_facts(json, part);
    } catch (const ReportJson::exception& error) {
      section = section_of(part, {});
      section.tables.clear();
      section.notes.clear();
      section.charts.clear();
      section.says.clear();
      section.problems.push_back(fmt::format("{}.json cannot be read: {}", part, error.what()));
      unread_ = true;
    }
    section.when = time_text(facts.st_mtime);
    if (!problems_[part].empty()) section.problems.push_back(problems_[part]);
    return section;
  }

  void add_facts(const ReportJson& json, const std::string& part) {
    const ReportJson& machine = member(json, "machine");
    if (machine.is_null()) return;
    if (machine_.is_null()) {
      machine_ = machine;
      version_ = word(json, "version");
    }
    if (word(machine, "cpu") != word(machine_, "cpu") ||
        word(machine, "kernel") != word(machine_, "kernel") ||
        number(machine, "cores") != number(machine_, "cores"))
      others_ += (others_.empty() ? "" : ", ") + part;
    for (const ReportJson& gpu : member(member(json, "cuda"), "devices"))
      gpus_ += (gpus_.empty() ? "" : ", ") + word(gpu, "name");
  }

  void save() {
    machine_ = {};
    gpus_.clear();
    others_.clear();
    latest_ = 0;
    unread_ = false;
    missing_.clear();
    Page out;
    for (const char* part : kReportParts) {
      out.sections.push_back(section(part));
      if (!out.sections.back().problems.empty()) missing_.emplace_back(part);
    }
    out.title = "shardbench report";
    out.when =
        fmt::format("{}{}", latest_ > 0 ? "Measured until " + time_text(latest_) : "Nothing was measured",
                    options_.quick ? ", in the quick form: fewer and shorter samples" : "");
    const auto fact = [&](const char* name, const std::string& value) {
      if (!value.empty()) out.facts.emplace_back(name, value);
    };
    fact("CPU", word(machine_, "cpu"));
    fact("Cores", people(number(machine_, "cores")));
    fact("Memory", bytes_text(number(machine_, "memory_bytes")));
    fact("GPU", gpus_.empty() ? "none was seen" : gpus_);
    fact("System", word(machine_, "system"));
    fact("Kernel", word(machine_, "kernel"));
    fact("shardbench", fmt::format("{}, {}", version_, word(machine_, "compiler")));
    fact("Decoders", word(machine_, "decoders"));
    fact("Load before the start", people(number(machine_, "load_at_start")));
    fact("Images and data sets", made_);
    fact("Command", command_);
    if (!others_.empty())
      out.problems.push_back("Measured on another machine than the rest: " + others_ + ".");
    publish_file(page(), to_html(out));
  }

  int end() {
    for (const std::string& part : missing_)
      cli::out("{}: {}\n", part, problems_[part].empty() ? "not complete, see the page" : problems_[part]);
    cli::out("{}\n", page().string());
    return missing_.empty() && !incomplete_ && !unread_ ? 0 : 1;
  }

  ReportOptions& options_;
  std::string command_, made_, version_, gpus_, others_;
  ReportJson machine_;
  std::map<std::string, std::string> problems_, commands_;
  std::map<std::string, bool> done_;
  std::vector<std::string> missing_;
  std::time_t latest_ = 0;
  bool incomplete_ = false, unread_ = false;
  cli::Progress progress_;
};

}  // namespace

void add_report(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  ReportOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("report",
                                     "Run the other subcommands one after the other and write one page, "
                                     "DIR/index.html, of their tables and charts,\n"
                                     "with NAME.json of each beside it. The page needs no network. Without "
                                     "--images and --dataset, pictures and "
                                     "data sets\n"
                                     "are made in DIR and removed again. Takes less than 10 minutes on 2 "
                                     "cores, with --quick about one; with your "
                                     "own\n"
                                     "images at most 2,000 of them are decoded (--quick: 256), your data "
                                     "sets are copied whole to each tier. "
                                     "Exit code\n"
                                     "1: something was left out, and the page says what and why.\n"
                                     "Example: shardbench report report --images photos --dataset out/plain "
                                     "out/packed --tier nvme=/mnt/nvme");
  sub->add_option("DIR", options.folder, "Folder to make: new, empty, or of an earlier report")->required();
  sub->add_option("--images", options.images, "Folder of JPEGs; with --dataset those that it was made of");
  sub->add_option(
      "--dataset", options.datasets,
      "Folders made by shardify of the same images, such as plain and packed ones (default: made of "
      "--images, where there are at most 4,000)");
  sub->add_option("--tier", options.tiers, "NAME=PATH, each: as of shardbench tiers");
  sub->add_option("--emulate", options.emulate, "Also a tier that you do not have: as of shardbench tiers");
  sub->add_option("--device", options.device, "auto: cuda where there is one")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  sub->add_option("--seconds", options.seconds, "Of each sample, about (default: 1; --quick: 0.3)")
      ->check(CLI::Range(0.001, 600.0));
  sub->add_flag("--quick", options.quick, "Fewer and shorter samples, smaller sizes");
  sub->add_flag("--from-json", arguments->from_json, "Measure nothing: the page of the JSON files in DIR");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] {
      ReportRun run(*arguments, command_line);
      return arguments->from_json ? run.from_json() : run.measure();
    };
  });
}

}  // namespace shard::bench
