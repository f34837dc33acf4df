#include "commands/report/jobs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "commands/convert/convert_bench.hpp"
#include "data/synth.hpp"
#include "harness/measure.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/inputs.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

// Images that are measured, at most; more than that to be converted is the user's to do.
std::uint64_t most_images(bool quick) { return quick ? 256 : 1000; }
constexpr std::uint64_t kMostConverted = 4000;

constexpr std::uint64_t kBatch = 256;  // the default of those that make batches

// 0: it cannot be read; whoever measures it says why.
std::uint64_t samples_of(const std::string& dataset) {
  try {
    return Dataset::open(dataset).size();
  } catch (const Error&) {
    return 0;
  }
}

bool is_any_size(const std::string& dataset) {
  try {
    return Dataset::open(dataset).info().spec.is_free();
  } catch (const Error&) {
    return false;
  }
}

void make_dataset(const std::string& images, const std::filesystem::path& out, const char* codec,
                  const std::atomic<bool>& cancel) {
  convert::Options options = preset_options("train");
  options.images = images;
  options.out = out;
  options.codec = codec_spec_from_string(codec);
  convert::Hooks hooks;
  hooks.cancel = &cancel;
  convert::run(options, hooks);
}

}  // namespace

ReportData::ReportData(const ReportOptions& options, const std::atomic<bool>& cancel,
                       const std::function<void(const std::string&)>& note)
    : scratch_(options.folder), images_(options.images), datasets_(options.datasets) {
  attempt(problem_, [&] { make(options, cancel, note); });
}

void ReportData::make(const ReportOptions& options, const std::atomic<bool>& cancel,
                      const std::function<void(const std::string&)>& note) {
  if (images_.empty() && !datasets_.empty()) {
    problem_ = "no images were given: add --images, the folder that the data set was made of";
    return;
  }
  if (images_.empty()) {
    note("making pictures");
    SynthOptions synth;
    synth.folder = scratch() / "pictures";
    synth.count = options.quick ? 64 : 600;
    synthesize(synth, [&](const SynthSummary&) { return !cancel; });
    images_ = synth.folder.string();
    made_ = fmt::format("{} pictures made by shardbench synth for this report; take your own with --images. ",
                        synth.count);
  }
  count_ = convert::Inputs(images_).size();
  if (!datasets_.empty()) return;
  if (count_ > kMostConverted) {
    problem_ = fmt::format(
        "no data set was given, and {} images are too many to make one on the way: shardify {} OUT --preset "
        "train, "
        "then add --dataset OUT",
        count_, images_);
    return;
  }
  for (const char* codec : {"none", "packed"}) {
    note(fmt::format("making a data set, codec {}", codec));
    make_dataset(images_, scratch() / codec, codec, cancel);
    datasets_.push_back((scratch() / codec).string());
  }
  made_ += "Data sets made for this report: shardify --preset train, with codec none and packed.";
}

std::vector<ReportJob> report_jobs(const ReportOptions& options, const ReportData& data) {
  using Words = std::vector<std::string>;
  const bool quick = options.quick;
  const std::string seconds = fmt::format("{}", options.seconds > 0 ? options.seconds : quick ? 0.3 : 1.0);
  const std::string few_seconds = fmt::format("{}", options.seconds > 0 ? std::min(options.seconds, 0.05)
                                                    : quick             ? 0.02
                                                                        : 0.05);
  const bool some_data = !data.datasets().empty();
  const std::string left_out = "left out: " + data.problem();
  const std::string no_images = !data.images().empty() && data.count() > 0 ? "" : left_out;
  const std::string no_data = some_data ? "" : left_out;
  const std::string neither = !no_data.empty() ? no_data : no_images;
  const std::string first = some_data ? data.datasets().front() : "";
  const std::uint64_t samples = some_data ? samples_of(first) : data.count();

  const auto where = [](bool holds, const Words& words) { return holds ? words : Words{}; };
  const auto each = [](const char* option, const Words& values) {
    Words words;
    for (const std::string& value : values) words.insert(words.end(), {option, value});
    return words;
  };
  const Words repeat{"--repeat", quick ? "2" : "3"};
  const Words device = where(options.device != "auto", {"--device", options.device});
  const Words counted =
      where(data.count() > most_images(quick), {"--count", std::to_string(most_images(quick))});
  // Batches of no more samples than there are.
  const Words batched = where(samples > 0 && samples < kBatch, {"--batch-size", std::to_string(samples)});
  // Samples of any size become batches only by a crop or a resize.
  const Words cropped = where(some_data && is_any_size(first), {"--crop", "random-resized:224"});
  Words places{options.folder.string()};
  places.insert(places.end(), options.datasets.begin(), options.datasets.end());
  for (const std::string& tier : options.tiers)
    if (const auto at = tier.find('='); at != std::string::npos) places.push_back(tier.substr(at + 1));
  const Words steps =
      quick ? Words{"--batches",    "3",
                    "--batch-size", std::to_string(std::clamp<std::uint64_t>(data.count(), 1, 32)),
                    "--repeat",     "1",
                    "--step-ms",    options.seconds > 0 && options.seconds < 0.1 ? "5" : "20"}
            : Words{"--batches", "8", "--repeat", "3"};

  std::vector<ReportJob> jobs;
  const auto add = [&](const char* name, double weight, double quick_weight, const std::string& problem,
                       std::initializer_list<Words> parts) {
    ReportJob& job = jobs.emplace_back(ReportJob{name, {}, problem, quick ? quick_weight : weight});
    if (!problem.empty()) return;
    job.arguments = {name};
    for (const Words& part : parts) job.arguments.insert(job.arguments.end(), part.begin(), part.end());
  };
  add("device", 1, 1, "", {places});
  add("convert", 40, 5, no_images, {{data.images(), "--out", data.scratch().string()}, repeat, counted});
  add("decode", 50, 8, no_images, {{data.images(), "--seconds", seconds}, repeat, counted, batched, device});
  add("tiers", 150, 20, neither,
      {data.datasets(),
       {"--images", data.images(), "--seconds", seconds},
       repeat,
       each("--tier", options.tiers),
       batched,
       each("--emulate", options.emulate),
       counted,
       device});
  add("pipeline", 100, 10, neither, {{first, "--images", data.images()}, steps, counted, device});
  add("load", 5, 2, no_data, {{first, "--seconds", seconds}, cropped, batched, repeat, device});
  add("upload", 60, 5, "",
      {{"--seconds", few_seconds},
       repeat,
       where(quick, {"--memory", "32MiB", "--chunks", "64KiB,32MiB", "--batch-sizes", "1,32,128"}),
       device});
  add("memory", 20, 5, no_data, {{first}, cropped, where(quick, {"--batch-sizes", "1,32"}), device});
  add("write", 20, 3, "",
      {{options.folder.string(), "--size", quick ? "32MiB" : "512MiB", "--shard-bytes",
        quick ? "16MiB" : "128MiB"},
       repeat});
  add("matmul", 60, 3, "",
      {{"--seconds", few_seconds}, repeat, where(quick, {"--sizes", "256,1024"}), device});
  return jobs;
}

}  // namespace shard::bench
