#include <algorithm>
#include <memory>
#include <string>

#include "commands.hpp"
#include "commands/decode/decode_bench.hpp"
#include "feeds/loader_arguments.hpp"
#include "harness/interrupt.hpp"
#include "harness/stats.hpp"
#include "harness/temp_folder.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct DecodeArguments {
  std::string images, device = "auto";
  Outputs outputs;
  std::uint64_t count = 0;
  DecodeOptions options;
};

Json difference_json(const LevelDifference& difference) {
  return {{"mean", difference.mean}, {"most", difference.most}};  // NaN is null
}

Json case_json(const DecodeCase& one) {
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
  if (one.calls) {
    entry["callers"] = one.calls->callers;
    entry["call_files"] = one.calls->files;
    entry["boxes"] = one.calls->boxes;
  }
  if (one.values) {
    entry["values_compared"] = one.values->compared;
    entry["values_differ"] = one.values->differ;
    entry["left_to_host"] = one.values->on_host;
  }
  if (!one.limited_by.empty()) entry["limited_by"] = one.limited_by;
  if (!one.problem.empty()) entry["problem"] = one.problem;
  if (!one.samples.empty()) {
    entry["images_per_second"] = median_of(one.samples, &DecodeSample::images_per_second);
    entry["limit_images_per_second"] = median_of(one.samples, &DecodeSample::limit_images_per_second);
    entry["cores"] = median_of(one.samples, &DecodeSample::cores);
  }
  entry["samples"] = samples;
  return entry;
}

int run_decode(DecodeArguments& arguments, const std::string& command) {
  Report report("decode", command, arguments.outputs);
  DecodeOptions& options = arguments.options;
  options.check();
  const std::shared_ptr<Device> device = devices_of(arguments.device, std::min(options.jobs(), 64U))[0];
  const InterruptGuard interrupt;
  report.progress().prepare("reading the images into memory");
  const TempFolder scratch({});
  const PhotoSet photos(arguments.images, arguments.count, scratch.path(), interrupt_flag());
  Candidates candidates = make_cpu_candidates(photos, device, options);
  std::string no_decoder;
  for (auto& one : make_jpeg_candidates(photos, device, options, no_decoder))
    candidates.push_back(std::move(one));
  std::string absent = "the device is the host";
  if (device->info().kind == DeviceKind::cuda) {
    absent.clear();
    for (auto& one : make_nvjpeg_candidates(photos, device, options, absent))
      candidates.push_back(std::move(one));
  }
  Json& json = report.json();
  json["device"] = device->info().name;
  json["threads"] = options.jobs();
  json["batch_size"] = options.batch_size;
  json["resize"] = options.resize;
  json["crop"] = options.crop;
  json["repeat"] = options.repeat;
  json["seconds"] = options.seconds;
  json["input"] = {{"images", photos.size()},
                   {"excluded", photos.excluded()},
                   {"bytes", photos.bytes()},
                   {"pixels", photos.pixels()}};
  json["nvjpeg_absent"] = absent;
  json["jpeg_decoder_absent"] = no_decoder;
  unsigned repeats = 0;
  const auto cases = bench_decode(photos, options, candidates, interrupt_flag(), [&](const auto& now) {
    json["cases"] = Json::array();
    for (const DecodeCase& one : now) json["cases"].push_back(case_json(one));
    report.save(repeats++, options.repeat);
  });
  report.finish(decode_section);
  const bool all = device->info().kind == DeviceKind::host || (absent.empty() && no_decoder.empty());
  return any_problem(cases) || !all ? 1 : 0;
}

}  // namespace

void add_decode(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<DecodeArguments>();
  DecodeOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("decode", R"(
      Measure decoding on the fly, on the CPU, with nvJPEG and with the loader's kernels

      Times the way from JPEG files in the page cache to normalised float16 batches on the device, as fast as
      it can be done: by libjpeg-turbo on all threads (full and scaled DCT, normalised on the host or on the
      device) and, on a GPU, by nvJPEG (with the hardware engine, if there is one). On a GPU also by
      shard::JpegDecoder, whose kernels take files as they are: from pinned memory, whole images and random
      resized crops, called by several threads at once. Before timing, the pixels are compared with those of
      shardify; for JpegDecoder no value may differ. Exit code 1: a candidate was left out, with the reason.

      Example: shardbench decode photos --device cuda --json decode.json)",
                                  arguments, run_decode);
  sub.add_option("IMAGES", arguments->images, "A folder of JPEGs, or @FILE, a list of them")->required();
  add_device_option(sub, arguments->device);
  add_threads_option(sub, options.threads, "Threads that decode", 1024);
  sub.add_option("--count", arguments->count, "Images, evenly spread; more than there are repeats files")
      ->default_str("all");
  sub.add_option("--resize", options.resize, "Short side");
  sub.add_option("--crop-size", options.crop, "Rows and columns of the centre crop");
  sub.add_option("--batch-size", options.batch_size, "Samples per batch, 1 to 4096");
  sub.add_option("--callers", options.callers, R"(
Threads that call a JpegDecoder each, at a time, 1 to 64; given for the host, its decoder is measured)")
      ->delimiter(',')
      ->default_str("1,2,4,8; host: no rows");
  sub.add_option("--call-files", options.call_files, "Files of a call of JpegDecoder, 1 to 65536")
      ->delimiter(',');
  add_seconds_option(sub, options.seconds, "Length of a sample, about");
  add_repeat_option(sub, options.repeat);
  add_quick_option(sub, options.repeat, options.seconds, 0.5);
  add_output_options(sub, arguments->outputs);
}

}  // namespace shard::bench
