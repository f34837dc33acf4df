#include <memory>
#include <string>
#include <vector>

#include "base/system/parallel.hpp"
#include "commands.hpp"
#include "commands/matmul/matmul_bench.hpp"
#include "harness/interrupt.hpp"
#include "harness/stats.hpp"
#include "sections.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct MatmulArguments {
  MatmulOptions options;
  unsigned threads = 0;
  std::string device = "auto";
  Outputs outputs;
};

Json case_json(const MatmulCase& one) {
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
    entry["flops_per_second"] = median_of(one.samples, &MatmulSample::flops);
    entry["limit_flops_per_second"] = stats_of(one.samples, &MatmulSample::peak_flops).max;
    entry["whole_seconds"] = median_of(one.samples, &MatmulSample::trip_seconds);
  }
  entry["samples"] = samples;
  return entry;
}

int run_matmul(MatmulArguments& arguments, const std::string& command) {
  Report report("matmul", command, arguments.outputs, "size");
  arguments.threads = thread_count(arguments.threads);
  std::vector<std::unique_ptr<Multiplier>> multipliers;
  std::string absent;
  if (arguments.device != "host") multipliers = make_gpu_multipliers(absent);
  if (arguments.device == "cuda" && multipliers.empty())
    throw Error(ErrorCode::unsupported, "--device cuda: " + absent);
  if (arguments.device == "host") absent = "--device host";
  multipliers.insert(multipliers.begin(), make_cpu_multiplier(arguments.threads));

  const InterruptGuard interrupt;
  Json& json = report.json();
  json["sizes"] = arguments.options.sizes;
  json["repeat"] = arguments.options.repeat;
  json["threads"] = arguments.threads;
  json["gpu_absent"] = absent;
  const auto cases = bench_matmul(arguments.options, multipliers, interrupt_flag(), [&](const auto& now) {
    json["cases"] = Json::array();
    for (const MatmulCase& one : now) json["cases"].push_back(case_json(one));
    report.save(now.size() / multipliers.size(), arguments.options.sizes.size());
  });
  report.finish(matmul_section);
  return any_problem(cases) ? 1 : 0;
}

}  // namespace

void add_matmul(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<MatmulArguments>();
  MatmulOptions& options = arguments->options;
  CLI::App& sub = subcommands.add("matmul", R"(
      Measure matrix products on the CPU and the GPU, with and without the copies

      Times square products: float32 on all cores and, on the GPU (cuBLAS), float32, TF32, and float16 with float32 sums,
      beside the peak of the hardware. Each product is first compared with one in double precision. A wrong one is not
      timed, and the exit code is 1.

      Example: shardbench matmul --sizes 256,1024,4096 --json matmul.json)",
                                  arguments, run_matmul);
  sub.add_option("--sizes", options.sizes, "Rows and columns, 1 to 16384")->delimiter(',');
  sub.add_option("--device", arguments->device,
                 R"(
auto: the CPU, and the GPU if there is one; host: the CPU; cuda: both, or an error)")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"auto", "host", "cuda"}));
  add_threads_option(sub, arguments->threads, "Threads on the CPU");
  add_repeat_option(sub, options.repeat);
  add_seconds_option(sub, options.seconds);
  add_quick_option(sub, options.repeat, options.seconds, 0.02);
  add_output_options(sub, arguments->outputs);
}

}  // namespace shard::bench
