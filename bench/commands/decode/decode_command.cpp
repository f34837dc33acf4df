#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/decode/decode_bench.hpp"
#include "commands/load/loader_arguments.hpp"
#include "harness/common_options.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"
#include "harness/temp_folder.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;
using Cases = std::vector<DecodeCase>;

struct Arguments {
  std::string images, device = "auto";
  Outputs outputs;
  std::uint64_t count = 0;
  DecodeOptions options;
};

struct Context {
  const Arguments& arguments;
  const PhotoSet& photos;
  const Device& device;
  std::string absent;  // why there is no nvJPEG
};

Stats stats_of(const DecodeCase& one, double DecodeSample::*field) {
  std::vector<double> values;
  for (const DecodeSample& sample : one.samples) values.push_back(sample.*field);
  return summarize(values);
}

std::string table_text(const Cases& cases, const Context& context) {
  using Align = cli::Table::Align;
  cli::Table table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
                    Align::right, Align::left});
  table.add_row(
      {"", "images/s", "lowest", "highest", "limit", "share", "cores", "levels off, mean / most (allowed)"});
  std::string text, notes, unsteady;
  const DecodeCase* best = nullptr;
  for (const DecodeCase& one : cases) {
    if (one.samples.empty() || !one.problem.empty()) {
      table.add_row({one.name, "left out"});
      notes += fmt::format("{} was left out: {}\n", one.name, one.problem);
      continue;
    }
    const Stats rate = stats_of(one, &DecodeSample::images_per_second);
    const double limit = stats_of(one, &DecodeSample::limit_images_per_second).median;
    const bool exact = one.allowed.mean == 0 && one.allowed.most == 0;
    table.add_row({one.name, fmt::format("{:.0f}", rate.median), fmt::format("{:.0f}", rate.min),
                   fmt::format("{:.0f}", rate.max), limit > 0 ? fmt::format("{:.0f}", limit) : "-",
                   limit > 0 ? fmt::format("{:.2f}", rate.median / limit) : "-",
                   fmt::format("{:.1f}", stats_of(one, &DecodeSample::cores).median),
                   exact ? "the converter's bits"
                         : fmt::format("{:.2f} / {:.0f} ({:.1f} / {:.0f})", one.difference.mean,
                                       one.difference.most, one.allowed.mean, one.allowed.most)});
    notes += fmt::format("{}: {}", one.name, one.how);
    if (one.limit == DecodeLimit::scaled)
      notes += fmt::format("; {:.2f} levels from decoding in full on average", one.from_full.mean);
    if (!one.limited_by.empty()) notes += fmt::format("; limit: '{}'", one.limited_by);
    if (one.photos < context.photos.size())
      notes += fmt::format("; {} of the {} images, it does not take the others", one.photos,
                           context.photos.size());
    notes += "\n";
    if (spread_warning("", rate)) unsteady += (unsteady.empty() ? "" : "; ") + one.name;
    if (one.name.find("decode only") == std::string::npos &&
        (best == nullptr || rate.median > stats_of(*best, &DecodeSample::images_per_second).median))
      best = &one;
  }
  text = table.to_string() + notes;
  text +=
      "limit of libjpeg-turbo: whole images to pixels alone, same threads, same DCT, files in memory (a crop "
      "needs\nless of an image, so that a share above 1 is possible)\n";
  if (!context.absent.empty()) {
    const bool some = std::any_of(cases.begin(), cases.end(),
                                  [](const DecodeCase& one) { return one.name.starts_with("nvJPEG"); });
    text += fmt::format("nvJPEG was left out{}: {}\n", some ? " in part" : "", context.absent);
  }
  if (best != nullptr)
    text += fmt::format("The best that makes batches: {}, {:.0f} images/s.\n", best->name,
                        stats_of(*best, &DecodeSample::images_per_second).median);
  if (!unsteady.empty())
    text += fmt::format(
        "warning: the samples of {} differ by more than {:.0f} % of their median: end other programs, or "
        "raise --repeat or --seconds\n",
        unsteady, 100 * kSpreadBound);
  return text;
}

Json difference_json(const LevelDifference& difference) {
  return {{"mean", difference.mean}, {"most", difference.most}};  // NaN is null
}

void add_json(Json& json, const Cases& cases, const Context& context) {
  const DecodeOptions& options = context.arguments.options;
  json["device"] = context.device.info().name;
  json["threads"] = options.jobs();
  json["batch_size"] = options.batch_size;
  json["resize"] = options.resize;
  json["crop"] = options.crop;
  json["repeat"] = options.repeat;
  json["seconds"] = options.seconds;
  json["input"] = {{"images", context.photos.size()},
                   {"excluded", context.photos.excluded()},
                   {"bytes", context.photos.bytes()},
                   {"pixels", context.photos.pixels()}};
  json["nvjpeg_absent"] = context.absent;
  json["cases"] = Json::array();
  for (const DecodeCase& one : cases) {
    Json samples = Json::array();
    for (const DecodeSample& sample : one.samples)
      samples.push_back({{"images_per_second", sample.images_per_second},
                         {"limit_images_per_second", sample.limit_images_per_second},
                         {"cores", sample.cores}});
    Json entry{{"name", one.name},
               {"how", one.how},
               {"images", one.photos},
               {"checked", one.checked},
               {"levels_from_reference", difference_json(one.difference)},
               {"levels_allowed", difference_json(one.allowed)},
               {"levels_from_full_decoding", difference_json(one.from_full)}};
    if (!one.problem.empty()) entry["problem"] = one.problem;
    if (!one.samples.empty()) {
      entry["images_per_second"] = stats_of(one, &DecodeSample::images_per_second).median;
      entry["limit_images_per_second"] = stats_of(one, &DecodeSample::limit_images_per_second).median;
      entry["cores"] = stats_of(one, &DecodeSample::cores).median;
    }
    entry["samples"] = samples;
    json["cases"].push_back(entry);
  }
}

BarChart chart_of(const Cases& cases) {
  BarChart chart{"Decoding on the fly", "images/s", {}, {}};
  for (const DecodeCase& one : cases)
    if (one.problem.empty() && !one.samples.empty())
      add_bar(chart, one.name, stats_of(one, &DecodeSample::images_per_second).median,
              one.name.starts_with("nvJPEG") ? "nvJPEG" : "libjpeg-turbo");
  return chart;
}

int run(Arguments& arguments, const std::string& command) {
  const Machine facts = machine();
  DecodeOptions& options = arguments.options;
  options.check();
  const auto devices = devices_of(arguments.device, std::min(options.jobs(), 64U));
  const std::shared_ptr<Device>& device = devices[0];
  const InterruptGuard interrupt;
  Report report("decode", command, facts, arguments.outputs);
  StepProgress progress("repeat");
  progress.prepare("reading the images into memory");
  const TempFolder scratch({});
  const PhotoSet photos(arguments.images, arguments.count, scratch.path(), interrupt_flag());
  Contenders contenders = make_cpu_contenders(photos, device, options);
  Context context{arguments, photos, *device, {}};
  if (device->info().kind == DeviceKind::host) {
    context.absent = "the device is the host";
  } else {
    for (auto& one : make_nvjpeg_contenders(photos, device, options, context.absent))
      contenders.push_back(std::move(one));
  }
  unsigned repeats = 0;
  const Cases cases = bench_decode(photos, options, contenders, interrupt_flag(), [&](const Cases& now) {
    add_json(report.json(), now, context);
    report.save();
    progress.show(repeats++, options.repeat);
  });
  progress.finish();
  if (!report.on_stdout()) {
    cli::out("device: {}; {} images ({} left out: no clean JPEG), {:.0f} bytes and {:.0f} pixels each\n",
             device->info().name, photos.size(), photos.excluded(),
             static_cast<double>(photos.bytes()) / static_cast<double>(photos.size()),
             static_cast<double>(photos.pixels()) / static_cast<double>(photos.size()));
    cli::out("short side to {}, centre {}x{}, float16 [channel, row, column], normalised, batches of {}\n\n",
             options.resize, options.crop, options.crop, options.batch_size);
    cli::write_out(table_text(cases, context));
  }
  add_json(report.json(), cases, context);
  report.finish(chart_of(cases));
  const bool incomplete =
      std::any_of(cases.begin(), cases.end(), [](const DecodeCase& one) { return !one.problem.empty(); }) ||
      (device->info().kind == DeviceKind::cuda && !context.absent.empty());
  return incomplete ? 1 : 0;
}

}  // namespace

void add_decode(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  DecodeOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("decode", R"(
      Measure decoding on the fly, on the CPU and with nvJPEG

      Times the way from JPEG files in the page cache to normalised float16 batches on the device, as fast as it can be done: by
      libjpeg-turbo on all threads (full and scaled DCT, normalised on the host or on the device) and, on a GPU, by nvJPEG
      (with the hardware engine, if there is one). Before timing, the pixels are compared with those of shardify. Exit
      code 1: a candidate was left out, with the reason.

      Example: shardbench decode photos --device cuda --json decode.json)");
  sub->add_option("IMAGES", arguments->images, "A folder of JPEGs, or @FILE, a list of them")->required();
  sub->add_option("--device", arguments->device, "host or cuda")
      ->type_name("DEVICE")
      ->default_str("cuda, if there is one");
  sub->add_option("--threads", options.threads, "Threads that decode")
      ->default_str("one per core")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--count", arguments->count, "Images, evenly spread; more than there are repeats files")
      ->default_str("all");
  sub->add_option("--resize", options.resize, "Short side")->capture_default_str();
  sub->add_option("--crop-size", options.crop, "Rows and columns of the centre crop")->capture_default_str();
  sub->add_option("--batch-size", options.batch_size, "Samples per batch, 1 to 4096")->capture_default_str();
  add_seconds_option(*sub, options.seconds, "Length of a sample, about");
  add_repeat_option(*sub, options.repeat);
  add_quick_option(*sub, options.repeat, options.seconds, 0.5);
  add_output_options(*sub, arguments->outputs);
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
