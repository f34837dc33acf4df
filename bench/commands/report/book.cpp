#include "commands/report/book.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "report/section.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPageFile = "index.html";

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string time_text(std::time_t when) { return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(when)); }

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

bool is_ours(const std::string& name) {
  return name == kPageFile ||
         std::any_of(kReportParts.begin(), kReportParts.end(),
                     [&](const ReportPart& part) { return name == part.name + std::string(".json"); });
}

}  // namespace

ReportBook::ReportBook(fs::path folder, std::string command) : folder_(std::move(folder)) {
  if (fs::exists(page()) && read_text(page()).find(kPageGenerator) == std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: its {} is not one of shardbench report: name another folder",
                            quoted(folder_), kPageFile));
  set_fact("Command", std::move(command));
}

void ReportBook::make_folder() const {
  const std::string shown = quoted(folder_);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: no folder can be made there: {}", shown, error.message()));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (!is_ours(name))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: it holds {}, which no report made: name a new folder, an empty one, or "
                              "that of an earlier report",
                              shown, quoted(name)));
  }
  for (const ReportPart& part : kReportParts) fs::remove(json_of(part.name));
}

fs::path ReportBook::page() const { return folder_ / kPageFile; }
fs::path ReportBook::json_of(const std::string& part) const { return folder_ / (part + ".json"); }

void ReportBook::set_problem(const std::string& part, std::string problem, std::string command) {
  problems_[part] = std::move(problem);
  commands_[part] = std::move(command);
}

void ReportBook::set_fact(std::string name, std::string value) {
  if (!value.empty()) facts_.emplace_back(std::move(name), std::move(value));
}

PageSection ReportBook::section(const ReportPart& from) {
  const std::string part = from.name;
  const PageSection empty = from.section({});
  PageSection section;
  section.id = empty.id;
  section.title = empty.title;
  section.command = commands_[part];
  const fs::path file = json_of(part);
  const std::string& problem = problems_[part];
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) {
    section.problems.push_back(!problem.empty()
                                   ? problem
                                   : fmt::format("missing: make it with shardbench {}{} --json {}", part,
                                                 from.operands, file.string()));
    missing_.push_back(part + ": " + section.problems.back());
    return section;
  }
  seen_.latest = std::max(seen_.latest, facts.st_mtime);
  section.when = time_text(facts.st_mtime);
  std::string why = problem;
  try {
    const ReportJson json = ReportJson::parse(read_text(file));
    const std::string when = section.when;
    section = from.section(json);
    section.when = when;
    add_machine(json, part);
    if (why.empty() && lacks(json)) why = "a part was left out, the page says which and why";
  } catch (const ReportJson::exception& error) {
    why = fmt::format("{} cannot be read: {}", quoted(file), error.what());
    section.problems.push_back(why);
  }
  if (!problem.empty()) section.problems.push_back(problem);
  if (!why.empty()) missing_.push_back(part + ": " + why);
  return section;
}

void ReportBook::add_machine(const ReportJson& json, const std::string& part) {
  const ReportJson& machine = member(json, "machine");
  for (const ReportJson& gpu : member(member(json, "cuda"), "devices"))
    seen_.gpus += (seen_.gpus.empty() ? "" : ", ") + word(gpu, "name");
  if (!machine.is_object()) return;
  if (seen_.machine.is_null()) {
    seen_.machine = machine;
    seen_.version = word(json, "version");
  }
  if (word(machine, "cpu") != word(seen_.machine, "cpu") ||
      word(machine, "kernel") != word(seen_.machine, "kernel") ||
      number(machine, "cores") != number(seen_.machine, "cores"))
    seen_.others += (seen_.others.empty() ? "" : ", ") + part;
}

void ReportBook::save() {
  seen_ = {};
  missing_.clear();
  Page out;
  for (const ReportPart& part : kReportParts) out.sections.push_back(section(part));
  out.title = "shardbench report";
  out.when = seen_.latest > 0 ? "Measured until " + time_text(seen_.latest) : "Nothing was measured";
  const ReportJson& machine = seen_.machine;
  const double memory = number(machine, "memory_bytes");
  out.facts = {{"CPU", word(machine, "cpu")},
               {"Cores", people(machine, "cores")},
               {"Memory", memory > 0 ? bytes_text(memory) : ""},
               {"GPU", seen_.gpus.empty() ? "none was seen" : seen_.gpus},
               {"System", word(machine, "system")},
               {"Kernel", word(machine, "kernel")},
               {"shardbench", fmt::format("{}, {}", seen_.version, word(machine, "compiler"))},
               {"Decoders", word(machine, "decoders")},
               {"Load before the start", people(machine, "load_at_start")}};
  out.facts.insert(out.facts.end(), facts_.begin(), facts_.end());
  if (!seen_.others.empty())
    out.problems.push_back("Measured on another machine than the rest: " + seen_.others + ".");
  publish_file(page(), to_html(out));
}

}  // namespace shard::bench
