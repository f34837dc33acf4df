#include "commands/report/jobs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "commands/convert/convert_bench.hpp"
#include "convert/scan.hpp"
#include "data/synth.hpp"
#include "shard/convert/convert.hpp"
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

void make_dataset(const std::string& images, const std::filesystem::path& out, const char* codec,
                  const std::atomic<bool>& cancel) {
  convert::Options options = preset_options("train");
  options.images = images;
  options.out = out;
  options.codec = codec_from_string(codec);
  convert::Hooks hooks;
  hooks.cancel = &cancel;
  convert::run(options, hooks);
}

}  // namespace

ReportData::ReportData(const ReportOptions& options, const std::atomic<bool>& cancel,
                       const std::function<void(const std::string&)>& note)
    : scratch_(options.folder), images_(options.images), datasets_(options.datasets) {
  try {
    make(options, cancel, note);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    problem_ = error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    problem_ = error.what();
  }
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
  count_ = convert::scan(images_, {}).inputs.size();
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
  const bool quick = options.quick;
  const std::string seconds = fmt::format("{}", options.seconds > 0 ? options.seconds : quick ? 0.3 : 1.0);
  const std::string few_seconds = fmt::format("{}", options.seconds > 0 ? std::min(options.seconds, 0.05)
                                                    : quick             ? 0.02
                                                                        : 0.05);
  const std::string folder = options.folder.string();
  const std::vector<std::string> repeat{"--repeat", quick ? "2" : "3"};
  const bool some_images = !data.images().empty() && data.count() > 0;
  const bool some_data = !data.datasets().empty();
  const std::string no_images = some_images ? "" : "left out: " + data.problem();
  const std::string no_data = some_data ? "" : "left out: " + data.problem();

  const std::string first = some_data ? data.datasets().front() : "";
  const std::uint64_t samples = some_data ? samples_of(first) : data.count();

  std::vector<ReportJob> jobs;
  const auto add = [&](const char* name, std::vector<std::string> arguments, const std::string& left_out,
                       double weight, double quick_weight) {
    arguments.insert(arguments.begin(), name);
    if (!left_out.empty()) arguments.clear();
    jobs.push_back({name, std::move(arguments), left_out, quick ? quick_weight : weight});
    return jobs.back().arguments.empty() ? nullptr : &jobs.back().arguments;
  };
  const auto more = [](std::vector<std::string>* list, const std::vector<std::string>& words) {
    if (list != nullptr) list->insert(list->end(), words.begin(), words.end());
  };
  const auto on_device = [&](std::vector<std::string>* list) {
    if (options.device != "auto") more(list, {"--device", options.device});
  };
  const auto counted = [&](std::vector<std::string>* list) {
    if (data.count() > most_images(quick)) more(list, {"--count", std::to_string(most_images(quick))});
  };

  // Batches of no more samples than there are.
  const auto batched = [&](std::vector<std::string>* list) {
    if (samples > 0 && samples < kBatch) more(list, {"--batch-size", std::to_string(samples)});
  };

  std::vector<std::string> places{folder};
  for (const std::string& dataset : options.datasets) places.push_back(dataset);
  for (const std::string& tier : options.tiers) {
    const auto at = tier.find('=');
    if (at != std::string::npos) places.push_back(tier.substr(at + 1));
  }
  add("device", places, "", 1, 1);

  auto* job = add("convert", {data.images(), "--out", data.scratch().string()}, no_images, 40, 5);
  more(job, repeat);
  counted(job);

  job = add("decode", {data.images(), "--seconds", seconds}, no_images, 50, 8);
  more(job, repeat);
  counted(job);
  batched(job);
  on_device(job);

  const std::string neither = !no_data.empty() ? no_data : no_images;
  job = add("tiers", data.datasets(), neither, 150, 20);
  more(job, {"--images", data.images(), "--seconds", seconds});
  more(job, repeat);
  for (const std::string& tier : options.tiers) more(job, {"--tier", tier});
  batched(job);
  for (const std::string& tier : options.emulate) more(job, {"--emulate", tier});
  counted(job);
  on_device(job);

  job = add("pipeline", {first, "--images", data.images()}, neither, 100, 10);
  more(job, quick ? std::vector<std::string>{"--batches", "3", "--batch-size",
                                             std::to_string(std::clamp<std::uint64_t>(data.count(), 1, 32)),
                                             "--repeat", "1", "--step-ms",
                                             options.seconds > 0 && options.seconds < 0.1 ? "5" : "20"}
                  : std::vector<std::string>{"--batches", "8", "--repeat", "3"});
  counted(job);
  on_device(job);

  job = add("load", {first, "--seconds", seconds}, no_data, 5, 2);
  batched(job);
  more(job, repeat);
  on_device(job);

  job = add("upload", {"--seconds", few_seconds}, "", 60, 5);
  more(job, repeat);
  if (quick) more(job, {"--memory", "32MiB", "--chunks", "64KiB,32MiB", "--batch-sizes", "1,32,128"});
  on_device(job);

  job = add("memory", {first}, no_data, 20, 5);
  if (quick) more(job, {"--batch-sizes", "1,32"});
  on_device(job);

  job =
      add("write", {folder, "--size", quick ? "32MiB" : "512MiB", "--shard-size", quick ? "16MiB" : "128MiB"},
          "", 20, 3);
  more(job, repeat);

  job = add("matmul", {"--seconds", few_seconds}, "", 60, 3);
  more(job, repeat);
  if (quick) more(job, {"--sizes", "256,1024"});
  on_device(job);
  return jobs;
}

}  // namespace shard::bench
