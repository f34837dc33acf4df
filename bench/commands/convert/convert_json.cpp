// The result of `shardbench convert` as JSON.
#include <utility>

#include <fmt/core.h>

#include "cli/text.hpp"
#include "commands/convert/convert_bench.hpp"
#include "harness/stats.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

Json stats_json(const std::vector<double>& values) {
  const Stats s = values.empty() ? Stats{} : summarize(values);
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}, {"samples", s.count}};
}

Json elapsed_json(const Elapsed& elapsed) {
  return {{"seconds", elapsed.seconds}, {"cpu_seconds", elapsed.cpu_seconds}};
}

Json run_json(const ConvertRun& run) {
  const convert::Summary& s = run.summary;
  Json json = elapsed_json(run.elapsed);
  json["scan_seconds"] = s.scan_seconds;
  json["convert_seconds"] = s.convert_seconds;
  json["size_bytes"] = s.size_bytes;
  json["shards"] = s.shards;
  json["stage_thread_seconds"] = {{"read", s.stages.read},
                                  {"preprocess", s.stages.preprocess},
                                  {"store", s.stages.store},
                                  {"publish", s.stages.publish},
                                  {"wait", s.stages.wait}};
  return json;
}

// Ratios are taken repeat by repeat, so that what slows both down at once cancels out.
Json case_json(const ConvertCase& one, std::uint64_t images) {
  const auto count = static_cast<double>(images);
  std::vector<double> decode, convert, ratio, cpu_ratio, output;
  Json runs = Json::array();
  Json decodes = Json::array();
  for (std::size_t k = 0; k < one.converts.size(); ++k) {
    const Elapsed& alone = one.decodes[k];
    const ConvertRun& run = one.converts[k];
    decode.push_back(count / alone.seconds);
    convert.push_back(count / run.elapsed.seconds);
    ratio.push_back(alone.seconds / run.elapsed.seconds);
    if (run.elapsed.cpu_seconds > 0) cpu_ratio.push_back(alone.cpu_seconds / run.elapsed.cpu_seconds);
    output.push_back(static_cast<double>(run.summary.size_bytes) / run.elapsed.seconds / 1e6);
    decodes.push_back(elapsed_json(alone));
    runs.push_back(run_json(run));
  }
  return {{"jobs", one.jobs},
          {"decode", {{"images_per_second", stats_json(decode)}, {"runs", std::move(decodes)}}},
          {"convert", {{"images_per_second", stats_json(convert)}, {"runs", std::move(runs)}}},
          {"ratio", stats_json(ratio)},
          {"cpu_ratio", stats_json(cpu_ratio)},
          {"output_mb_per_second", stats_json(output)}};
}

double rate_of(const Json& one, const char* name) { return one[name]["images_per_second"]["median"]; }

}  // namespace

std::vector<std::string> warnings(const Json& json) {
  std::vector<std::string> list;
  const unsigned cores = json["machine"]["cores"];
  const double load = json["machine"]["load_at_start"];
  for (const Json& one : json["cases"]) {
    const unsigned jobs = one["jobs"];
    const std::string threads = cli::counted(jobs, "thread");
    for (const char* name : {"decode", "convert"}) {
      const Json& rate = one[name]["images_per_second"];
      const Stats stats{rate["samples"], rate["median"], rate["min"], rate["max"]};
      if (auto w = spread_warning(fmt::format("{}, {}", name, threads), stats)) list.push_back(*w);
    }
    if (jobs > cores)
      list.push_back(fmt::format("{} on {} cores: give --jobs {} or fewer", threads, cores, cores));
    const double rate = rate_of(one, "convert");
    if (const double seconds = json["input"]["images"].get<double>() / rate; seconds < 1.0)
      list.push_back(
          fmt::format("convert, {}: {:.2f} s per run is too short to trust: give --count {} or more", threads,
                      seconds, static_cast<std::uint64_t>(2 * rate)));
  }
  if (load > 0.3 * cores)
    list.push_back(fmt::format(
        "the machine was busy before the start (load {:.1f} on {} cores): end other programs", load, cores));
  if (const std::uint64_t excluded = json["input"]["excluded"]; excluded > 0)
    list.push_back(
        fmt::format("{} files took no part: no JPEG, or one that does not decode cleanly", excluded));
  return list;
}

void add_json(Json& json, const ConvertBenchOptions& options, const ConvertBenchResult& result) {
  json["preset"] = options.preset;
  if (!options.size.empty()) json["size"] = options.size;
  if (!options.codec.empty()) json["codec"] = options.codec;
  json["repeat"] = options.repeat;
  json["input"] = {{"path", options.images},      {"images", result.images}, {"distinct", result.distinct},
                   {"excluded", result.excluded}, {"bytes", result.bytes},   {"pixels", result.pixels}};
  json["checked_samples"] = result.checked_samples;
  json["cases"] = Json::array();
  for (const ConvertCase& one : result.cases) json["cases"].push_back(case_json(one, result.images));
  json["warnings"] = warnings(json);
  if (result.cases.size() == 1) return;
  const Json& one = json["cases"].front();
  const Json& all = json["cases"].back();
  json["scaling"] = {{"jobs", all["jobs"]},
                     {"convert", rate_of(all, "convert") / rate_of(one, "convert")},
                     {"decode", rate_of(all, "decode") / rate_of(one, "decode")}};
}

}  // namespace shard::bench
