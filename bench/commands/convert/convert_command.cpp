#include <memory>
#include <string>

#include "cli/output.hpp"
#include "commands.hpp"
#include "commands/convert/convert_bench.hpp"
#include "commands/convert/convert_report.hpp"
#include "harness/common_options.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/step_estimate.hpp"

namespace shard::bench {
namespace {

struct Arguments {
  ConvertBenchOptions options;
  Outputs outputs;
};

int run(const Arguments& arguments, const std::string& command) {
  const Machine facts = machine();
  const InterruptGuard interrupt;
  Report report("convert", command, facts, arguments.outputs);
  StepProgress progress("repeat");
  unsigned done = 0;
  const ConvertBenchResult result = bench_convert(
      arguments.options, interrupt_flag(), [&](const std::string& text) { progress.prepare(text); },
      [&](const ConvertBenchResult& now) {
        add_json(report.json(), arguments.options, now, facts);
        report.save();
        progress.show(++done, arguments.options.repeat);
      });
  progress.finish();
  if (!report.on_stdout()) cli::write_out(report_table(arguments.options, result, facts));
  report.finish(convert_chart(result));
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  ConvertBenchOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("convert",
                                     "Time the conversion of a folder of JPEGs against its limit: decoding "
                                     "them from memory by libjpeg-turbo and\n"
                                     "nothing else, on the same threads, in the same run, turn and turn "
                                     "about. What is made is checked first.");
  sub->add_option("IMAGES", options.images, "Folder of JPEGs")->required();
  sub->add_option("--preset", options.preset, "eval: 224x224 f16; train: 256x256 u8")
      ->check(CLI::IsMember({"eval", "train"}))
      ->capture_default_str();
  sub->add_option("--jobs", options.jobs, "Threads (default: one a core)")->check(CLI::Range(1, 1024));
  sub->add_flag("--scaling", options.scaling, "Also on one thread");
  add_repeat_option(*sub, options.repeat, "Runs of each");
  sub->add_option("--count", options.count,
                  "Images: fewer than there are, or more (files repeat); default: each once")
      ->check(CLI::Range(1, 10'000'000));
  sub->add_option("--out", options.out,
                  "Folder on the disk to write to (default: $TMPDIR or /tmp); left as it was");
  add_quick_option(*sub, "At most 3 runs of each, and 512 images", [arguments] {
    lower_to(arguments->options.repeat, 3U);
    arguments->options.most = 512;
  });
  add_output_options(*sub, arguments->outputs, "Every sample, stage and fact of the machine as JSON");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
