#include <memory>
#include <string>

#include "commands.hpp"
#include "commands/convert/convert_bench.hpp"
#include "harness/interrupt.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

struct ConvertArguments {
  ConvertBenchOptions options;
  Outputs outputs;
};

int run_convert(ConvertArguments& arguments, const std::string& command) {
  const InterruptGuard interrupt;
  Report report("convert", command, arguments.outputs);
  unsigned done = 0;
  bench_convert(
      arguments.options, interrupt_flag(), [&](const std::string& text) { report.progress().prepare(text); },
      [&](const ConvertBenchResult& now) {
        add_json(report.json(), arguments.options, now);
        report.save(++done, arguments.options.repeat);
      });
  report.finish(convert_section);
  return 0;
}

}  // namespace

void add_convert(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<ConvertArguments>();
  ConvertBenchOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("convert", R"(
      Compare conversion speed with decoding alone

      Times the conversion of a folder of JPEGs and, alternating with it, libjpeg-turbo decoding the same files from
      memory on the same threads, which is the limit. The result of the conversion is checked first.

      Example: shardbench convert photos --scaling --json convert.json)",
                                  arguments, run_convert);
  sub.add_option("IMAGES", options.images, "A folder of JPEGs")->required();
  sub.add_option("--preset", options.preset, "train: 256x256 u8; eval: 224x224 f16")
      ->type_name("NAME")
      ->check(CLI::IsMember({"train", "eval"}));
  sub.add_option("--size", options.size, "original: each sample has the size of its image")
      ->type_name("NAME")
      ->default_str("the preset's")
      ->check(CLI::IsMember({"original"}));
  sub.add_option("--codec", options.codec, "none, packed, zstd:1 to zstd:19, jpeg or jpeg:1 to jpeg:100")
      ->type_name("none|packed|zstd|jpeg")
      ->default_str("the preset's");
  add_threads_option(sub, options.jobs, "Threads", 1024, "--jobs");
  sub.add_flag("--scaling", options.scaling, "Measure on one thread too");
  add_repeat_option(sub, options.repeat, "Runs of each");
  sub.add_option("--count", options.count, "Number of images; more than there are repeats files")
      ->default_str("all")
      ->check(CLI::Range(1, 10'000'000));
  sub.add_option("--out", options.out, "The folder on the disk to write to. It is left as it was")
      ->type_name("DIR")
      ->default_str("$TMPDIR or /tmp");
  add_quick_option(sub, "Take at most 3 runs of each, with 512 images", [arguments] {
    lower_to(arguments->options.repeat, 3U);
    arguments->options.most = 512;
  });
  add_output_options(sub, arguments->outputs,
                     "Write every sample and stage, and a description of the machine, as JSON");
}

}  // namespace shard::bench
