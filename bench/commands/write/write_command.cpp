#include <algorithm>
#include <memory>
#include <string>

#include "base/text/quote.hpp"
#include "base/text/size.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "commands/write/write_bench.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/interrupt.hpp"
#include "harness/stats.hpp"
#include "sections.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kQuickBytes = std::uint64_t{128} << 20U;

struct WriteArguments {
  WriteOptions options;
  std::string size = "1GiB", shard_size = "256MiB", block = "1MiB";
  Outputs outputs;
};

double written_rate(const WriteSample& sample) {
  return static_cast<double>(sample.bytes) / sample.write_seconds;
}
double durable_rate(const WriteSample& sample) {
  return static_cast<double>(sample.bytes) / sample.durable_seconds();
}

Json case_json(const WriteCase& one, double disk) {
  Json samples = Json::array();
  for (const WriteSample& sample : one.samples)
    samples.push_back({{"bytes", sample.bytes},
                       {"write_seconds", sample.write_seconds},
                       {"sync_seconds", sample.sync_seconds},
                       {"written_bytes_per_second", written_rate(sample)},
                       {"durable_bytes_per_second", durable_rate(sample)}});
  Json entry{{"method", write_name(one.method, one.preallocated)}, {"samples", samples}};
  if (!one.problem.empty()) entry["problem"] = one.problem;
  if (!one.samples.empty()) {
    const double durable = median_of(one.samples, durable_rate);
    entry["written_bytes_per_second"] = median_of(one.samples, written_rate);
    entry["durable_bytes_per_second"] = durable;
    entry["share_of_disk"] = disk > 0 ? Json(durable / disk) : Json();
    entry["checked_blocks"] = one.checked_blocks;
  }
  return entry;
}

std::uint64_t size_of(const char* option, const std::string& text) {
  try {
    return parse_size(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", option, error.what()));
  }
}

int run_write(WriteArguments& arguments, const std::string& command) {
  WriteOptions& options = arguments.options;
  options.sizes = {size_of("--size", arguments.size), size_of("--shard-bytes", arguments.shard_size),
                   size_of("--block", arguments.block)};
  const InterruptGuard interrupt;
  Report report("write", command, arguments.outputs, "run");
  Json& json = report.json();
  json["path"] = options.folder.string();
  json["size_bytes"] = options.sizes.size_bytes;
  json["shard_bytes"] = options.sizes.shard_bytes;
  json["block_bytes"] = options.sizes.block_bytes;
  json["repeat"] = options.repeat;
  std::size_t done = 0;
  bench_write(options, interrupt_flag(), [&](const WriteResult& now) {
    json["disk_bytes_per_second"] = now.disk_bytes_per_second;
    json["memory_bytes_per_second"] = now.memory_bytes_per_second;
    json["cases"] = Json::array();
    const double disk = median_of(now.disk_bytes_per_second, std::identity{});
    for (const WriteCase& one : now.cases) json["cases"].push_back(case_json(one, disk));
    report.save(++done, now.cases.size() * options.repeat);
  });
  const Json facts = filesystem_facts(options.folder);
  const std::string type = facts.value("type", "");
  const bool memory = type == "tmpfs" || type == "ramfs";
  report.finish(
      write_section, fmt::format("{} is {} on {}\n", quoted(options.folder), type, facts.value("source", "")),
      memory ? type + " is memory: nothing in it outlives the machine's next start, fsync or not.\n" : "");
  return 0;
}

}  // namespace

void add_write(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<WriteArguments>();
  CLI::App& sub = subcommands.add("write", R"(
      Find the fastest durable way of writing shards to a disk

      Times writing shards to PATH by one thread: buffered, O_DIRECT and mapped, each with and without fallocate. The
      ways alternate, and what was written is read back and compared. The files are in a new folder in PATH, which is
      removed, even after an interrupt.

      Example: shardbench write /data --size 4GiB --json write.json)",
                                  arguments, run_write);
  sub.add_option("PATH", arguments->options.folder, "A folder on the disk; it must exist")->required();
  sub.add_option("--size", arguments->size, "Bytes per run; use more than the disk's own cache")
      ->type_name("BYTES");
  sub.add_option("--shard-bytes", arguments->shard_size, "Bytes per file")->type_name("BYTES");
  sub.add_option("--block", arguments->block, "Bytes per write")->type_name("BYTES");
  add_repeat_option(sub, arguments->options.repeat, "Runs of each");
  add_quick_option(sub, "Take at most 3 runs of 128 MiB of each", [arguments] {
    lower_to(arguments->options.repeat, 3U);
    const std::uint64_t size = std::min(size_of("--size", arguments->size), kQuickBytes);
    arguments->size = std::to_string(size);
  });
  add_output_options(sub, arguments->outputs);
}

}  // namespace shard::bench
