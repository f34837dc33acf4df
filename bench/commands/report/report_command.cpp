#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/system/stopwatch.hpp"
#include "base/text/quote.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/report/book.hpp"
#include "commands/report/child.hpp"
#include "commands/report/jobs.hpp"
#include "harness/interrupt.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

struct ReportArguments {
  ReportOptions options;
  bool from_json = false;
};

class ReportRun {
 public:
  ReportRun(const ReportOptions& options, const std::string& command)
      : options_(options), book_(options.folder, command) {
    book_.make_folder();
  }

  int run() {
    const InterruptGuard interrupt;
    try {
      book_.set_fact("Form", options_.quick ? "quick: fewer and shorter samples" : "full");
      run_jobs();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled) throw;
      for (const ReportPart& part : kReportParts)
        if (!done_.contains(part.name)) book_.set_problem(part.name, "not measured to its end: interrupted");
      book_.save();
      throw Error(ErrorCode::cancelled,
                  fmt::format("stopped; {} has what was measured until then", quoted(book_.page())));
    }
    progress_.finish();
    book_.save();
    return finish_report(book_, incomplete_);
  }

  static int finish_report(const ReportBook& book, bool incomplete) {
    for (const std::string& missing : book.missing()) cli::out("{}\n", missing);
    cli::out("{}\n", book.page().string());
    return book.missing().empty() && !incomplete ? 0 : 1;
  }

 private:
  void run_jobs() {
    const ReportData data(options_, interrupt_flag(),
                          [&](const std::string& text) { progress_.update(text); });
    book_.set_fact("Images and data sets", data.made());
    const std::vector<ReportJob> jobs = report_jobs(options_, data);
    double rest = 0;
    for (const ReportJob& job : jobs) rest += job.arguments.empty() ? 0 : job.weight;
    const Stopwatch watch;
    double past = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const ReportJob& job = jobs[i];
      if (job.arguments.empty()) {
        book_.set_problem(job.name, job.left_out);
        done_.insert(job.name);
        continue;
      }
      const double pace =
          past > 10 ? watch.seconds() / past : 1;  // of this machine against the one of the weights
      run_job(job, fmt::format("{} of {}, {}, about {} left", i + 1, jobs.size(), job.name,
                               cli::human_duration(rest * pace)));
      rest -= job.weight;
      past += job.weight;
      book_.save();
    }
  }

  void run_job(const ReportJob& job, const std::string& where) {
    progress_.update(where);
    std::vector<std::string> arguments = job.arguments;
    arguments.insert(arguments.end(), {"--json", book_.json_of(job.name).string()});
    const ChildEnd end = run_child(arguments, interrupt_flag(),
                                   [&](const std::string& line) { progress_.update(where + ": " + line); });
    if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
    done_.insert(job.name);
    if (end.exit_code == 0) return;
    incomplete_ = true;
    if (end.exit_code == 1 && std::filesystem::exists(book_.json_of(job.name))) return;  // its rows say why
    book_.set_problem(job.name,
                      fmt::format("failed with exit code {}: {}", end.exit_code,
                                  end.last_line.empty() ? "it said nothing" : end.last_line),
                      fmt::format("shardbench {}", fmt::join(job.arguments, " ")));
  }

  const ReportOptions& options_;
  ReportBook book_;
  std::set<std::string> done_;
  bool incomplete_ = false;
  cli::Progress progress_;
};

int page_only(const ReportOptions& options, const std::string& command) {
  if (!std::filesystem::is_directory(options.folder))
    throw Error(ErrorCode::not_found, fmt::format("{}: no such folder", quoted(options.folder)));
  ReportBook book(options.folder, command);
  book.save();
  return ReportRun::finish_report(book, false);
}

int run_report(ReportArguments& arguments, const std::string& command) {
  if (arguments.from_json) return page_only(arguments.options, command);
  return ReportRun(arguments.options, command).run();
}

}  // namespace

void add_report(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<ReportArguments>();
  ReportOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("report", R"(
      Run all of these and write one HTML page that needs no network

      The page is DIR/index.html, with the JSON report of each subcommand beside it. Takes less than 10 minutes on 2 cores,
      and about one with --quick. Without --images and --dataset, pictures and data sets are made in DIR and removed
      again. Of your own images at most 1,000 are decoded (256 with --quick); your data sets are copied whole to each
      tier. Exit code 1: something was left out, and the page says what and why.

      Example: shardbench report report --images photos --dataset out/plain out/packed --tier nvme=/mnt/nvme)",
                                  arguments, run_report);
  sub.add_option("DIR", options.folder, "The folder to make: new, empty, or of an earlier report")
      ->required();
  sub.add_option("--images", options.images, R"(
A folder of JPEGs; with --dataset, those from which it was made)")
      ->type_name("IMAGES")
      ->default_str("made");
  sub.add_option("--dataset", options.datasets,
                 R"(
Folders made by shardify from the same images, such as a plain and a packed one)")
      ->type_name("DATASET")
      ->default_str("made of --images, if there are at most 4,000");
  sub.add_option("--tier", options.tiers, "As for shardbench tiers")->type_name("NAME=PATH");
  sub.add_option("--emulate", options.emulate, "As for shardbench tiers")->type_name("TIER");
  sub.add_option("--device", options.device, "auto: cuda, if there is one; host or cuda")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"auto", "host", "cuda"}));
  sub.add_option("--seconds", options.seconds, "Length of a sample, about")
      ->default_str("1; 0.3 with --quick")
      ->check(CLI::Range(0.001, 600.0));
  sub.add_flag("--quick", options.quick, "Fewer and shorter samples, and smaller sizes");
  sub.add_flag("--from-json", arguments->from_json, R"(
Measure nothing, and write the page from the JSON files in DIR)");
}

}  // namespace shard::bench
