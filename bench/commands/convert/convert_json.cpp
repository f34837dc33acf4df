#include "commands/convert/convert_json.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

std::vector<ConvertFigures> all_figures(const ConvertBenchResult& result) {
  std::vector<ConvertFigures> all;
  for (const ConvertCase& one : result.cases) all.push_back(figures(one, result.images));
  return all;
}

Json stats_json(const Stats& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}, {"samples", s.count}};
}

Json run_json(const ConvertRun& run) {
  const convert::Summary& s = run.summary;
  return {{"seconds", run.elapsed.seconds},
          {"cpu_seconds", run.elapsed.cpu_seconds},
          {"scan_seconds", s.scan_seconds},
          {"convert_seconds", s.convert_seconds},
          {"size_bytes", s.size_bytes},
          {"shards", s.shards},
          {"stage_thread_seconds",
           {{"read", s.stages.read},
            {"preprocess", s.stages.preprocess},
            {"store", s.stages.store},
            {"publish", s.stages.publish},
            {"wait", s.stages.wait}}}};
}

Json case_json(const ConvertCase& one, std::uint64_t images) {
  const ConvertFigures f = figures(one, images);
  Json runs = Json::array();
  Json decodes = Json::array();
  for (const Elapsed& e : one.decodes)
    decodes.push_back({{"seconds", e.seconds}, {"cpu_seconds", e.cpu_seconds}});
  for (const ConvertRun& run : one.converts) runs.push_back(run_json(run));
  return {{"jobs", one.jobs},
          {"decode", {{"images_per_second", stats_json(f.decode_rate)}, {"runs", std::move(decodes)}}},
          {"convert", {{"images_per_second", stats_json(f.convert_rate)}, {"runs", std::move(runs)}}},
          {"ratio", stats_json(f.ratio)},
          {"cpu_ratio", stats_json(f.cpu_ratio)},
          {"output_mb_per_second", stats_json(f.output_mb_rate)}};
}

}  // namespace

ConvertFigures figures(const ConvertCase& one, std::uint64_t images) {
  const auto count = static_cast<double>(images);
  std::vector<double> decode, convert, ratio, cpu_ratio, output, seconds;
  for (std::size_t k = 0; k < one.converts.size(); ++k) {
    const ConvertRun& run = one.converts[k];
    decode.push_back(count / one.decodes[k].seconds);
    convert.push_back(count / run.elapsed.seconds);
    ratio.push_back(one.decodes[k].seconds / run.elapsed.seconds);
    if (run.elapsed.cpu_seconds > 0)
      cpu_ratio.push_back(one.decodes[k].cpu_seconds / run.elapsed.cpu_seconds);
    output.push_back(static_cast<double>(run.summary.size_bytes) / run.elapsed.seconds / 1e6);
    seconds.push_back(run.elapsed.seconds);
  }
  ConvertFigures f;
  f.jobs = one.jobs;
  f.decode_rate = summarize(decode);
  f.convert_rate = summarize(convert);
  f.ratio = summarize(ratio);
  if (!cpu_ratio.empty()) f.cpu_ratio = summarize(cpu_ratio);
  f.output_mb_rate = summarize(output);
  std::vector<std::size_t> order(seconds.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return seconds[a] < seconds[b]; });
  const ConvertRun& median = one.converts[order[order.size() / 2]];
  f.stages = median.summary.stages;
  f.median_seconds = median.elapsed.seconds;
  f.scan_seconds = median.summary.scan_seconds;
  return f;
}

std::vector<std::string> warnings(const ConvertBenchResult& result, const Machine& machine) {
  std::vector<std::string> list;
  for (const ConvertFigures& f : all_figures(result)) {
    const std::string threads = fmt::format("{} thread{}", f.jobs, f.jobs == 1 ? "" : "s");
    if (auto w = spread_warning("decode, " + threads, f.decode_rate)) list.push_back(*w);
    if (auto w = spread_warning("convert, " + threads, f.convert_rate)) list.push_back(*w);
    if (f.jobs > machine.cores) {
      list.push_back(
          fmt::format("{} on {} cores: give --jobs {} or fewer", threads, machine.cores, machine.cores));
    }
    if (f.median_seconds < 1.0) {
      list.push_back(fmt::format("convert, {}: {:.2f} s a run is too short to trust: give --count {} or more",
                                 threads, f.median_seconds,
                                 static_cast<std::uint64_t>(2 * f.convert_rate.median)));
    }
  }
  if (machine.load > 0.3 * machine.cores) {
    list.push_back(
        fmt::format("the machine was busy before the start (load {:.1f} on {} cores): end other programs",
                    machine.load, machine.cores));
  }
  if (result.excluded > 0) {
    list.push_back(
        fmt::format("{} files took no part: no JPEG, or one that does not decode cleanly", result.excluded));
  }
  return list;
}

void add_json(Json& json, const ConvertBenchOptions& options, const ConvertBenchResult& result,
              const Machine& machine) {
  json["preset"] = options.preset;
  json["repeat"] = options.repeat;
  json["input"] = {{"path", options.images},      {"images", result.images}, {"distinct", result.distinct},
                   {"excluded", result.excluded}, {"bytes", result.bytes},   {"pixels", result.pixels}};
  json["checked_samples"] = result.checked_samples;
  json["cases"] = Json::array();
  for (const ConvertCase& one : result.cases) json["cases"].push_back(case_json(one, result.images));
  json["warnings"] = warnings(result, machine);
  if (result.cases.size() > 1) {
    const std::vector<ConvertFigures> all = all_figures(result);
    json["scaling"] = {{"jobs", all.back().jobs},
                       {"convert", all.back().convert_rate.median / all.front().convert_rate.median},
                       {"decode", all.back().decode_rate.median / all.front().decode_rate.median}};
  }
}

}  // namespace shard::bench
