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
  CLI::App* sub = app.add_subcommand("convert", R"(
      Compare conversion speed with decoding alone

      Times the conversion of a folder of JPEGs and, alternating with it, libjpeg-turbo decoding the same files from
      memory on the same threads, which is the limit. The result of the conversion is checked first.

      Example: shardbench convert photos --scaling --json convert.json)");
  sub->add_option("IMAGES", options.images, "A folder of JPEGs")->required();
  sub->add_option("--preset", options.preset, "eval: 224x224 f16; train: 256x256 u8")
      ->type_name("NAME")
      ->check(CLI::IsMember({"eval", "train"}))
      ->capture_default_str();
  sub->add_option("--jobs", options.jobs, "Threads")->default_str("one per core")->check(CLI::Range(1, 1024));
  sub->add_flag("--scaling", options.scaling, "Measure on one thread too");
  add_repeat_option(*sub, options.repeat, "Runs of each");
  sub->add_option("--count", options.count, "Number of images; more than there are repeats files")
      ->default_str("all")
      ->check(CLI::Range(1, 10'000'000));
  sub->add_option("--out", options.out, "The folder on the disk to write to. It is left as it was")
      ->type_name("DIR")
      ->default_str("$TMPDIR or /tmp");
  add_quick_option(*sub, "Take at most 3 runs of each, with 512 images", [arguments] {
    lower_to(arguments->options.repeat, 3U);
    arguments->options.most = 512;
  });
  add_output_options(*sub, arguments->outputs,
                     "Write every sample and stage, and a description of the machine, as JSON");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
