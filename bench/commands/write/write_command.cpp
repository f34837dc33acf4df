#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/write/write_bench.hpp"
#include "harness/common_options.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/interrupt.hpp"
#include "harness/run_report.hpp"
#include "harness/stats.hpp"
#include "harness/step_estimate.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kQuickBytes = std::uint64_t{128} << 20U;

struct Arguments {
  WriteOptions options;
  std::string size = "1GiB", shard_size = "256MiB", block = "1MiB";
  Outputs outputs;
};

struct Rates {
  Stats written;
  Stats durable;
};

Rates rates_of(const WriteCase& one) {
  std::vector<double> written, durable;
  for (const WriteSample& sample : one.samples) {
    written.push_back(static_cast<double>(sample.bytes) / sample.write_seconds);
    durable.push_back(static_cast<double>(sample.bytes) / sample.durable_seconds());
  }
  return {summarize(written), summarize(durable)};
}

double median_or_0(const std::vector<double>& values) {
  return values.empty() ? 0 : summarize(values).median;
}

std::string share(double rate, double limit) { return limit > 0 ? fmt::format("{:.2f}", rate / limit) : "-"; }

// The fastest durable way, and those that its own spread does not tell from it.
std::string verdict(const WriteResult& result, double disk) {
  const WriteCase* best = nullptr;
  for (const WriteCase& one : result.cases)
    if (!one.samples.empty() &&
        (best == nullptr || rates_of(one).durable.median > rates_of(*best).durable.median))
      best = &one;
  if (best == nullptr) return "Nothing could be written here.";
  const Stats rate = rates_of(*best).durable;
  std::string text = fmt::format("Fastest durable way: {}, {:.2f} GB/s with fsync",
                                 write_name(best->method, best->preallocated), rate.median / 1e9);
  if (disk > 0) text += fmt::format(", {:.2f} of what the disk takes", rate.median / disk);
  std::string close;
  for (const WriteCase& one : result.cases)
    if (&one != best && !one.samples.empty() && rates_of(one).durable.max >= rate.min)
      close += (close.empty() ? "" : ", ") + write_name(one.method, one.preallocated);
  return text + (close.empty() ? "." : fmt::format("; not to be told from it in these runs: {}.", close));
}

std::string table_text(const WriteResult& result, const Arguments& arguments,
                       const FilesystemFacts& disk_facts) {
  const double disk = median_or_0(result.disk_bytes_per_second);
  const double memory = median_or_0(result.memory_bytes_per_second);
  const WriteSizes& sizes = arguments.options.sizes;
  std::string text = fmt::format("{}: {} on {}; {} in files of {}, writes of {}, {} runs each\n",
                                 arguments.options.folder.string(), disk_facts.type, disk_facts.source,
                                 cli::human_bytes(sizes.size_bytes), cli::human_bytes(sizes.shard_bytes),
                                 cli::human_bytes(sizes.block_bytes), arguments.options.repeat);
  text += disk > 0
              ? fmt::format(
                    "limit of the disk: {:.2f} GB/s (written over past the page cache, 8 threads, fsync)\n",
                    disk / 1e9)
              : std::string("limit of the disk: not known, this filesystem has no O_DIRECT\n");
  text +=
      fmt::format("limit of the page cache: {:.2f} GB/s (one thread that copies memory)\n\n", memory / 1e9);
  using Align = cli::Table::Align;
  cli::Table table(
      {Align::left, Align::right, Align::right, Align::left, Align::right, Align::right, Align::left});
  table.add_row({"GB/s, median", "written", "share", "of", "with fsync", "of the disk", "lowest to highest"});
  std::string unsteady;
  for (const WriteCase& one : result.cases) {
    const std::string name = write_name(one.method, one.preallocated);
    if (one.samples.empty()) {
      table.add_row({name, "left out", "", one.problem});
      continue;
    }
    const Rates rates = rates_of(one);
    const bool direct = one.method == WriteMethod::direct;
    table.add_row({name, fmt::format("{:.2f}", rates.written.median / 1e9),
                   share(rates.written.median, direct ? disk : memory), direct ? "disk" : "page cache",
                   fmt::format("{:.2f}", rates.durable.median / 1e9), share(rates.durable.median, disk),
                   fmt::format("{:.2f} to {:.2f}", rates.durable.min / 1e9, rates.durable.max / 1e9)});
    if (spread_warning(name, rates.durable)) unsteady += (unsteady.empty() ? "" : ", ") + name;
  }
  text += table.to_string() + verdict(result, disk) + "\n";
  if (disk_facts.type == "tmpfs" || disk_facts.type == "ramfs")
    text += fmt::format("{} is memory: nothing in it outlives the machine's next start, fsync or not.\n",
                        disk_facts.type);
  if (!unsteady.empty())
    text += fmt::format(
        "warning: the runs of {} differ by more than {:.0f} % of their median: end other programs, or raise "
        "--repeat or --size\n",
        unsteady, 100 * kSpreadBound);
  return text;
}

void add_json(Json& json, const WriteResult& result, const Arguments& arguments) {
  const WriteSizes& sizes = arguments.options.sizes;
  json["path"] = arguments.options.folder.string();
  json["size_bytes"] = sizes.size_bytes;
  json["shard_bytes"] = sizes.shard_bytes;
  json["block_bytes"] = sizes.block_bytes;
  json["repeat"] = arguments.options.repeat;
  json["disk_bytes_per_second"] = result.disk_bytes_per_second;
  json["memory_bytes_per_second"] = result.memory_bytes_per_second;
  const double disk = median_or_0(result.disk_bytes_per_second);
  Json cases = Json::array();
  for (const WriteCase& one : result.cases) {
    Json samples = Json::array();
    for (const WriteSample& sample : one.samples) {
      const auto bytes = static_cast<double>(sample.bytes);
      samples.push_back({{"bytes", sample.bytes},
                         {"write_seconds", sample.write_seconds},
                         {"sync_seconds", sample.sync_seconds},
                         {"written_bytes_per_second", bytes / sample.write_seconds},
                         {"durable_bytes_per_second", bytes / sample.durable_seconds()}});
    }
    Json entry{{"method", write_name(one.method, one.preallocated)}, {"samples", samples}};
    if (!one.problem.empty()) entry["problem"] = one.problem;
    if (!one.samples.empty()) {
      entry["written_bytes_per_second"] = rates_of(one).written.median;
      entry["durable_bytes_per_second"] = rates_of(one).durable.median;
      entry["share_of_disk"] = disk > 0 ? Json(rates_of(one).durable.median / disk) : Json();
      entry["checked_blocks"] = one.checked_blocks;
    }
    cases.push_back(entry);
  }
  json["cases"] = cases;
}

std::uint64_t size_of(const char* option, const std::string& text) {
  try {
    return cli::parse_size(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", option, error.what()));
  }
}

BarChart chart_of(const WriteResult& result) {
  BarChart chart{"Ways to write shards", "GB/s", {}, {}};
  for (const WriteCase& one : result.cases) {
    if (one.samples.empty()) continue;
    const std::string name = write_name(one.method, one.preallocated);
    add_bar(chart, name, rates_of(one).durable.median / 1e9, "with fsync");
    add_bar(chart, name, rates_of(one).written.median / 1e9, "without");
  }
  const double disk = median_or_0(result.disk_bytes_per_second);
  if (disk > 0) add_bar(chart, "the disk", disk / 1e9, "limit");
  return chart;
}

int run(Arguments& arguments, const std::string& command) {
  WriteOptions& options = arguments.options;
  options.sizes = {size_of("--size", arguments.size), size_of("--shard-size", arguments.shard_size),
                   size_of("--block", arguments.block)};
  const Machine facts = machine();
  const InterruptGuard interrupt;
  Report report("write", command, facts, arguments.outputs);
  StepProgress progress("run");
  std::size_t done = 0;
  const WriteResult result = bench_write(options, interrupt_flag(), [&](const WriteResult& now) {
    add_json(report.json(), now, arguments);
    report.save();
    progress.show(++done, now.cases.size() * options.repeat);
  });
  progress.finish();
  if (!report.on_stdout()) cli::write_out(table_text(result, arguments, filesystem_facts(options.folder)));
  add_json(report.json(), result, arguments);
  report.finish(chart_of(result));
  return 0;
}

}  // namespace

void add_write(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("write", R"(
      Find the fastest durable way of writing shards to a disk

      Times writing shards to PATH by one thread: buffered, O_DIRECT and mapped, each with and without fallocate. The
      ways alternate, and what was written is read back and compared. The files are in a new folder in PATH, which is
      removed, even after an interrupt.

      Example: shardbench write /data --size 4GiB --json write.json)");
  sub->add_option("PATH", arguments->options.folder, "A folder on the disk; it must exist")->required();
  sub->add_option("--size", arguments->size, "Bytes per run; use more than the disk's own cache")
      ->type_name("BYTES")
      ->capture_default_str();
  sub->add_option("--shard-size", arguments->shard_size, "Bytes per file")
      ->type_name("BYTES")
      ->capture_default_str();
  sub->add_option("--block", arguments->block, "Bytes per write")->type_name("BYTES")->capture_default_str();
  add_repeat_option(*sub, arguments->options.repeat, "Runs of each");
  add_quick_option(*sub, "Take at most 3 runs of 128 MiB of each", [arguments] {
    lower_to(arguments->options.repeat, 3U);
    const std::uint64_t size = std::min(size_of("--size", arguments->size), kQuickBytes);
    arguments->size = std::to_string(size);
  });
  add_output_options(*sub, arguments->outputs);
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
