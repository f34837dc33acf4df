#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/load/loader_arguments.hpp"
#include "commands/pipeline/pipeline_bench.hpp"
#include "harness/common_options.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;
using Cases = std::vector<PipelineCase>;
constexpr std::size_t kShown = 6;  // batches of each

struct Arguments {
  std::string dataset, images, device = "auto";
  Outputs outputs;
  std::uint64_t count = 0;
  PipelineOptions options;
};

std::string batches_text(const Cases& cases) {
  using Align = cli::Table::Align;
  cli::Table table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"", "batch", "Load ms", "Transfer ms", "Train ms", "Total ms"});
  const auto row = [&](const std::string& name, const std::string& index, const BatchTimes& times) {
    table.add_row({name, index, fmt::format("{:.2f}", 1e3 * times.load_seconds),
                   fmt::format("{:.2f}", 1e3 * times.transfer_seconds),
                   fmt::format("{:.2f}", 1e3 * times.train_seconds),
                   fmt::format("{:.2f}", 1e3 * times.total())});
  };
  for (const PipelineCase& one : cases) {
    if (one.runs.empty() || !one.problem.empty()) continue;
    const auto& batches = one.runs.back();
    const std::size_t shown = std::min(kShown, batches.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const std::size_t index = i * batches.size() / shown;
      row(i == 0 ? one.name : "", std::to_string(index), batches[index]);
    }
    row("", "mean", one.mean());
  }
  return table.to_string();
}

std::string summary_text(const Cases& cases, const TrainStep& step, const PipelineOptions& options,
                         bool host) {
  using Align = cli::Table::Align;
  cli::Table table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"", "samples/s", "of the limit", "x the first", "x the one before", "device busy"});
  const double limit = static_cast<double>(options.batch_size) / step.seconds();
  double first = 0;
  double before = 0;
  std::string notes;
  for (const PipelineCase& one : cases) {
    if (one.runs.empty() || !one.problem.empty()) {
      table.add_row({one.name, "left out"});
      notes += fmt::format("{} was left out: {}\n", one.name, one.problem);
      continue;
    }
    const double rate = one.samples_per_second(options.batch_size);
    if (first == 0) first = rate;
    table.add_row({one.name, fmt::format("{:.0f}", rate), fmt::format("{:.2f}", rate / limit),
                   fmt::format("{:.2f}", rate / first),
                   before > 0 ? fmt::format("{:.2f}", rate / before) : "-",
                   fmt::format("{:.0f} %", 100 * one.utilisation())});
    before = rate;
    notes += fmt::format("{}: {}\n", one.name, one.how);
    std::vector<double> rates;
    for (const auto& run : one.runs) {
      double total = 0;
      for (const BatchTimes& times : run) total += times.total();
      rates.push_back(static_cast<double>(run.size()) / total);
    }
    if (const auto warning = spread_warning(one.name, summarize(rates)))
      notes += "warning: " + *warning + "\n";
  }
  if (host)
    notes +=
        "On the host the step and the decoding share the cores: a step that has to wait for them counts as "
        "busy.\n";
  return table.to_string() +
         fmt::format(
             "limit: {:.0f} samples/s, the step alone ({:.2f} ms a batch of {}: {} products of {}x{}, {})\n",
             limit, 1e3 * step.seconds(), options.batch_size, step.times(), step.size(), step.size(),
             step.name()) +
         notes;
}

void add_json(Json& json, const Cases& cases, const TrainStep& step, const Arguments& arguments,
              const Device& device, const std::vector<std::string>& problems) {
  const PipelineOptions& options = arguments.options;
  json["device"] = device.info().name;
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
  json["cases"] = Json::array();
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
    json["cases"].push_back(entry);
  }
}

BarChart chart_of(const Cases& cases, const PipelineOptions& options) {
  BarChart chart{"What each part of the pipeline brings", "samples/s", {}, {}};
  for (const PipelineCase& one : cases)
    if (one.problem.empty() && !one.runs.empty())
      add_bar(chart, one.name, one.samples_per_second(options.batch_size),
              one.name == "precomputed shards" ? "precomputed" : "decoding on the fly");
  return chart;
}

// On a GPU its tensor cores; on the host half of the threads, the others decode.
std::unique_ptr<Multiplier> make_model(const Device& device, const PipelineOptions& options) {
  if (device.info().kind == DeviceKind::host) return make_cpu_multiplier(std::max(1U, options.jobs() / 2));
  std::string absent;
  auto list = make_gpu_multipliers(absent);
  if (list.empty()) throw Error(ErrorCode::unsupported, "the training step needs cuBLAS: " + absent);
  return std::move(list.back());
}

int run(Arguments& arguments, const std::string& command) {
  const Machine facts = machine();
  PipelineOptions& options = arguments.options;
  const std::shared_ptr<Device> device = devices_of(arguments.device, std::min(options.jobs(), 64U))[0];
  const std::filesystem::path folder = arguments.dataset;
  const Dataset dataset = Dataset::open(folder);
  std::vector<std::string> problems;
  TierImages images;
  try {
    images = match_images(dataset, arguments.images, arguments.count);
  } catch (const Error& error) {
    images.problem = error.what();
    problems.push_back(fmt::format("decoding on the fly was left out: {}", error.what()));
  }
  options.batch_size = std::min(options.batch_size, dataset.size());

  const InterruptGuard interrupt;
  Report report("pipeline", command, facts, arguments.outputs);
  StepProgress progress("repeat");
  progress.prepare("calibrating the step");
  const std::unique_ptr<Multiplier> model = make_model(*device, options);
  TrainStep step(*model, options.step_ms);
  unsigned done = 0;
  const auto kinds = feed_kinds(folder, images, device, options);
  const Cases cases =
      bench_pipeline(kinds, folder, *device, step, options, interrupt_flag(), [&](const Cases& now) {
        add_json(report.json(), now, step, arguments, *device, problems);
        report.save();
        progress.show(done++, options.repeat);
      });
  progress.finish();
  if (!report.on_stdout()) {
    cli::out("device: {}; {} images, batches of {}, {} threads\n\n", device->info().name, images.paths.size(),
             options.batch_size, options.jobs());
    cli::write_out(batches_text(cases) + "\n" +
                   summary_text(cases, step, options, device->info().kind == DeviceKind::host));
    for (const std::string& problem : problems) cli::out("{}\n", problem);
  }
  add_json(report.json(), cases, step, arguments, *device, problems);
  report.finish(chart_of(cases, options));
  const bool complete =
      problems.empty() &&
      std::all_of(cases.begin(), cases.end(), [](const PipelineCase& one) { return one.problem.empty(); });
  return complete ? 0 : 1;
}

}  // namespace

void add_pipeline(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  PipelineOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("pipeline", R"(
      Measure what workers, pinned memory, prefetching and shards each contribute to a training step

      Feeds the same training step (matrix products) in several ways: one thread with pageable copies, worker threads,
      pinned memory, batches ahead on the host, batches ahead on the device, and shards. Each must produce the
      samples of the data set before it is timed. Exit code 1: a way was left out, with the reason.

      Example: shardbench pipeline out/train --images photos --step-ms 50 --json pipeline.json)");
  sub->add_option("DATASET", arguments->dataset, "A folder made by shardify")->required();
  sub->add_option("--images", arguments->images, "The images from which the data set was made")
      ->type_name("IMAGES")
      ->required();
  sub->add_option("--device", arguments->device, "host or cuda")
      ->type_name("DEVICE")
      ->default_str("cuda, if there is one");
  sub->add_option("--step-ms", options.step_ms, "Length of the training step in ms, when nothing else runs")
      ->check(CLI::Range(0.01, 1e5))
      ->capture_default_str();
  sub->add_option("--batches", options.batches, "Timed batches per run")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  sub->add_option("--batch-size", options.batch_size, "Samples per batch, at most those of the data set")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  sub->add_option("--prefetch", options.prefetch, "Batches ahead")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  sub->add_option("--threads", options.threads, "Threads that decode")
      ->default_str("one per core")
      ->check(CLI::Range(1, 64));
  sub->add_option("--count", arguments->count, "Images, evenly spread")->default_str("all");
  add_repeat_option(*sub, options.repeat, "Runs of each way, alternating");
  add_quick_option(*sub, "Take one run of at most 5 batches of each", [arguments] {
    arguments->options.repeat = 1;
    lower_to(arguments->options.batches, 5U);
  });
  add_output_options(*sub, arguments->outputs, "Write every batch as JSON");
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
