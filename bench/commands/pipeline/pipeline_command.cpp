#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "commands/pipeline/pipeline_bench.hpp"
#include "feeds/loader_arguments.hpp"
#include "feeds/sample_reference.hpp"
#include "harness/interrupt.hpp"
#include "harness/measure.hpp"
#include "sections.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct PipelineArguments {
  std::string dataset, images, device = "auto";
  Outputs outputs;
  std::uint64_t count = 0;
  PipelineOptions options;
};

Json cases_json(const std::vector<PipelineCase>& cases, const PipelineOptions& options) {
  Json list = Json::array();
  double first = 0;
  for (const PipelineCase& one : cases) {
    Json entry{{"name", one.name}, {"how", one.how}};
    if (!one.problem.empty()) entry["problem"] = one.problem;
    if (!one.runs.empty()) {
      const double rate = one.samples_per_second(options.batch_size);
      if (first == 0) first = rate;
      entry["samples_per_second"] = rate;
      entry["speed_up"] = rate / first;
      entry["device_busy"] = one.utilisation();
    }
    entry["runs"] = Json::array();
    for (const auto& run : one.runs) {
      Json batches = Json::array();
      for (const BatchTimes& times : run)
        batches.push_back({{"load_ms", 1e3 * times.load_seconds},
                           {"transfer_ms", 1e3 * times.transfer_seconds},
                           {"train_ms", 1e3 * times.train_seconds},
                           {"total_ms", 1e3 * times.total()}});
      entry["runs"].push_back(batches);
    }
    list.push_back(entry);
  }
  return list;
}

// On a GPU its tensor cores; on the host half of the threads, the others decode.
std::unique_ptr<Multiplier> make_model(const Device& device, const PipelineOptions& options) {
  if (device.info().kind == DeviceKind::host) return make_cpu_multiplier(std::max(1U, options.jobs() / 2));
  std::string absent;
  auto list = make_gpu_multipliers(absent);
  if (list.empty()) throw Error(ErrorCode::unsupported, "the training step needs cuBLAS: " + absent);
  return std::move(list.back());
}

int run_pipeline(PipelineArguments& arguments, const std::string& command) {
  Report report("pipeline", command, arguments.outputs);
  PipelineOptions& options = arguments.options;
  const std::shared_ptr<Device> device = devices_of(arguments.device, std::min(options.jobs(), 64U))[0];
  const std::filesystem::path folder = arguments.dataset;
  const Dataset dataset = Dataset::open(folder);
  check_deliverable(dataset);
  std::vector<std::string> problems;
  TierImages images;
  attempt(images.problem, [&] { images = match_images(dataset, arguments.images, arguments.count); });
  if (!images.problem.empty())
    problems.push_back(fmt::format("decoding on the fly was left out: {}", images.problem));
  options.batch_size = std::min(options.batch_size, dataset.size());

  const InterruptGuard interrupt;
  report.progress().prepare("calibrating the step");
  const std::unique_ptr<Multiplier> model = make_model(*device, options);
  TrainStep step(*model, options.step_ms);
  Json& json = report.json();
  json["device"] = device->info().name;
  json["threads"] = options.jobs();
  json["batch_size"] = options.batch_size;
  json["batches"] = options.batches;
  json["repeat"] = options.repeat;
  json["prefetch"] = options.prefetch;
  json["step"] = {{"wanted_ms", options.step_ms},
                  {"ms", 1e3 * step.seconds()},
                  {"arithmetic", step.name()},
                  {"size", step.size()},
                  {"times", step.times()}};
  json["limit_samples_per_second"] = static_cast<double>(options.batch_size) / step.seconds();
  json["problems"] = problems;
  unsigned done = 0;
  const auto kinds = feed_kinds(folder, images, device, options);
  const auto cases =
      bench_pipeline(kinds, folder, *device, step, options, interrupt_flag(), [&](const auto& now) {
        json["cases"] = cases_json(now, options);
        report.save(done++, options.repeat);
      });
  report.finish(pipeline_section);
  return problems.empty() && !any_problem(cases) ? 0 : 1;
}

}  // namespace

void add_pipeline(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<PipelineArguments>();
  PipelineOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("pipeline", R"(
      Measure what workers, pinned memory, prefetching and shards each contribute to a training step

      Feeds the same training step (matrix products) in several ways: one thread with pageable copies, worker threads,
      pinned memory, batches ahead on the host, batches ahead on the device, and shards. Each must produce the
      samples of the data set before it is timed. Exit code 1: a way was left out, with the reason.

      Example: shardbench pipeline out/train --images photos --step-ms 50 --json pipeline.json)",
                                  arguments, run_pipeline);
  sub.add_option("DATASET", arguments->dataset, "A folder made by shardify")->required();
  sub.add_option("--images", arguments->images, "The images from which the data set was made")
      ->type_name("IMAGES")
      ->required();
  add_device_option(sub, arguments->device);
  sub.add_option("--step-ms", options.step_ms, "Length of the training step in ms, when nothing else runs")
      ->check(CLI::Range(0.01, 1e5));
  sub.add_option("--batches", options.batches, "Timed batches per run")->check(CLI::Range(1, 100'000));
  sub.add_option("--batch-size", options.batch_size, "Samples per batch, at most those of the data set")
      ->check(CLI::Range(1, 65536));
  sub.add_option("--prefetch", options.prefetch, "Batches ahead")->check(CLI::Range(1, 64));
  add_threads_option(sub, options.threads);
  sub.add_option("--count", arguments->count, "Images, evenly spread")->default_str("all");
  add_repeat_option(sub, options.repeat, "Runs of each way, alternating");
  add_quick_option(sub, "Take one run of at most 5 batches of each", [arguments] {
    arguments->options.repeat = 1;
    lower_to(arguments->options.batches, 5U);
  });
  add_output_options(sub, arguments->outputs, "Write every batch as JSON");
}

}  // namespace shard::bench
