#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/cpu_count.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/matmul/matmul_bench.hpp"
#include "harness/common_options.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;
using Cases = std::vector<MatmulCase>;

struct Arguments {
  MatmulOptions options;
  unsigned threads = 0;
  std::string device = "auto";
  Outputs outputs;
};

template <class Field>
Stats stats_of(const MatmulCase& one, Field field) {
  std::vector<double> values;
  for (const MatmulSample& sample : one.samples) values.push_back(field(sample));
  return summarize(values);
}
double flops(const MatmulSample& sample) { return sample.flops; }
double peak(const MatmulSample& sample) { return sample.peak_flops; }
double loading(const MatmulSample& sample) { return sample.load_seconds; }
double multiplying(const MatmulSample& sample) { return sample.multiply_seconds; }
double storing(const MatmulSample& sample) { return sample.store_seconds; }
double trip(const MatmulSample& sample) { return sample.trip_seconds(); }

// The smallest measured size from which on every one is faster on the GPU; 0: none.
template <class Seconds>
std::size_t pays_from(const Cases& cases, const std::string& gpu, Seconds seconds) {
  std::size_t from = 0;
  std::vector<std::size_t> sizes;
  for (const MatmulCase& one : cases) sizes.push_back(one.n);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const std::size_t n : sizes) {
    double host = 0;
    double device = 0;
    for (const MatmulCase& one : cases) {
      if (one.n != n || one.samples.empty()) continue;
      if (!one.on_gpu) host = seconds(one);
      if (one.name == gpu) device = seconds(one);
    }
    if (host == 0 || device == 0 || device >= host) break;
    from = n;
  }
  return from;
}

std::string verdict(const Cases& cases, const std::string& absent) {
  if (!absent.empty()) return fmt::format("The GPU was left out: {}.\n", absent);
  std::vector<std::string> names;
  for (const MatmulCase& one : cases)
    if (one.on_gpu && std::find(names.begin(), names.end(), one.name) == names.end())
      names.push_back(one.name);
  const auto from = [](std::size_t n) {
    return n == 0 ? std::string("at none of these sizes") : fmt::format("from {} on", n);
  };
  std::string text;
  for (const std::string& name : names) {
    const std::size_t alone =
        pays_from(cases, name, [](const MatmulCase& one) { return 1 / stats_of(one, flops).median; });
    const std::size_t whole =
        pays_from(cases, name, [](const MatmulCase& one) { return stats_of(one, trip).median; });
    text += fmt::format("{} is faster than the CPU {} with the factors there already, {} with both copies.\n",
                        name, from(alone), from(whole));
  }
  return text;
}

std::string table_text(const Cases& cases, const std::string& absent) {
  using Align = cli::Table::Align;
  cli::Table table({Align::right, Align::left, Align::right, Align::right, Align::right, Align::right,
                    Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"size", "", "GFLOP/s", "limit", "share", "upload ms", "product ms", "download ms",
                 "in all ms", "error", "at most"});
  std::string limits, unsteady;
  for (const MatmulCase& one : cases) {
    const std::string size = std::to_string(one.n);
    if (one.samples.empty()) {
      table.add_row({size, one.name, one.problem});
      continue;
    }
    const Stats rate = stats_of(one, flops);
    const double limit = stats_of(one, peak).max;
    const auto ms = [&](auto field) { return fmt::format("{:.3f}", 1e3 * stats_of(one, field).median); };
    table.add_row({size, one.name, fmt::format("{:.0f}", rate.median / 1e9),
                   limit > 0 ? fmt::format("{:.0f}", limit / 1e9) : "not known",
                   limit > 0 ? fmt::format("{:.2f}", rate.median / limit) : "-",
                   one.on_gpu ? ms(loading) : "-", ms(multiplying), one.on_gpu ? ms(storing) : "-", ms(trip),
                   fmt::format("{:.1e}", one.error), fmt::format("{:.1e}", one.error_bound)});
    if (one.n == cases.front().n) limits += fmt::format("limit of {}: {}\n", one.name, one.peak_is);
    if (spread_warning("", rate))
      unsteady += fmt::format("{}{} {}", unsteady.empty() ? "" : ", ", one.name, one.n);
  }
  std::string text = table.to_string() + limits + verdict(cases, absent);
  if (!unsteady.empty())
    text += fmt::format(
        "warning: the runs of {} differ by more than {:.0f} % of their median: end other programs, or "
        "raise --repeat or --seconds\n",
        unsteady, 100 * kSpreadBound);
  return text;
}

void add_json(Json& json, const Cases& cases, const Arguments& arguments, const std::string& absent) {
  json["sizes"] = arguments.options.sizes;
  json["repeat"] = arguments.options.repeat;
  json["threads"] = arguments.threads;
  json["gpu_absent"] = absent;
  json["cases"] = Json::array();
  for (const MatmulCase& one : cases) {
    Json samples = Json::array();
    for (const MatmulSample& sample : one.samples)
      samples.push_back({{"flops_per_second", sample.flops},
                         {"limit_flops_per_second", sample.peak_flops},
                         {"upload_seconds", sample.load_seconds},
                         {"multiply_seconds", sample.multiply_seconds},
                         {"download_seconds", sample.store_seconds}});
    Json entry{{"size", one.n},
               {"name", one.name},
               {"on_gpu", one.on_gpu},
               {"limit_is", one.peak_is},
               {"error_bound", one.error_bound}};
    entry["error"] = one.error;  // NaN is null
    if (!one.problem.empty()) entry["problem"] = one.problem;
    if (!one.samples.empty()) {
      entry["flops_per_second"] = stats_of(one, flops).median;
      entry["limit_flops_per_second"] = stats_of(one, peak).max;
      entry["whole_seconds"] = stats_of(one, trip).median;
    }
    entry["samples"] = samples;
    json["cases"].push_back(entry);
  }
}

BarChart chart_of(const Cases& cases) {
  BarChart chart{"Matrix products", "GFLOP/s", {}, {}};
  for (const MatmulCase& one : cases)
    if (!one.samples.empty())
      add_bar(chart, fmt::format("{}, {}", one.n, one.name), stats_of(one, flops).median / 1e9, one.name);
  return chart;
}

int run(Arguments& arguments, const std::string& command) {
  const Machine facts = machine();
  if (arguments.threads == 0) arguments.threads = cpu_count();
  std::vector<std::unique_ptr<Multiplier>> multipliers;
  std::string absent;
  if (arguments.device != "host") multipliers = make_gpu_multipliers(absent);
  if (arguments.device == "cuda" && multipliers.empty())
    throw Error(ErrorCode::unsupported, "--device cuda: " + absent);
  if (arguments.device == "host") absent = "--device host";
  multipliers.insert(multipliers.begin(), make_cpu_multiplier(arguments.threads));

  const InterruptGuard interrupt;
  Report report("matmul", command, facts, arguments.outputs);
  StepProgress progress("size");
  const Cases cases = bench_matmul(arguments.options, multipliers, interrupt_flag(), [&](const Cases& now) {
    add_json(report.json(), now, arguments, absent);
    report.save();
    progress.show(now.size() / multipliers.size(), arguments.options.sizes.size());
  });
  progress.finish();
  if (!report.on_stdout()) cli::write_out(table_text(cases, absent));
  add_json(report.json(), cases, arguments, absent);
  report.finish(chart_of(cases));
  return std::any_of(cases.begin(), cases.end(), [](const MatmulCase& one) { return !one.problem.empty(); })
             ? 1
             : 0;
}

}  // namespace

void add_matmul(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  MatmulOptions& options = arguments->options;
  CLI::App* sub = app.add_subcommand("matmul", R"(
      Measure matrix products on the CPU and the GPU, with and without the copies

      Times square products: float32 on all cores and, on the GPU (cuBLAS), float32, TF32, and float16 with float32 sums,
      beside the peak of the hardware. Each product is first compared with one in double precision. A wrong one is not
      timed, and the exit code is 1.

      Example: shardbench matmul --sizes 256,1024,4096 --json matmul.json)");
  sub->add_option("--sizes", options.sizes, "Rows and columns, 1 to 16384")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_option("--device", arguments->device,
                  R"(
auto: the CPU, and the GPU if there is one; host: the CPU; cuda: both, or an error)")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  sub->add_option("--threads", arguments->threads, "Threads on the CPU")
      ->default_str("one per core")
      ->check(CLI::Range(1, 64));
  add_repeat_option(*sub, options.repeat);
  add_seconds_option(*sub, options.seconds);
  add_quick_option(*sub, options.repeat, options.seconds, 0.02);
  add_output_options(*sub, arguments->outputs);
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
