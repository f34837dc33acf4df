#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "harness/common_options.hpp"
#include "harness/cpu_facts.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/gpu_facts.hpp"
#include "harness/run_report.hpp"

namespace shard::bench {
namespace {

using cli::Table;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> paths;
  Outputs outputs;
};

struct Facts {
  Machine machine;
  CpuFacts cpu;
  MemoryFacts memory;
  GpuReport gpu;
  std::vector<FilesystemFacts> filesystems;
};

std::string limit_text(std::uint64_t bytes) {
  return bytes == MemoryFacts::kUnlimited ? "no limit" : cli::human_bytes(bytes);
}

std::string yes(bool value) { return value ? "yes" : "no"; }

std::string direct_storage(const GpuReport& gpu) {
  if (gpu.cufile && !gpu.nvidia_fs.empty()) return "libcufile is there, nvidia-fs " + gpu.nvidia_fs;
  return fmt::format("libcufile is {}, kernel module nvidia-fs is {}", gpu.cufile ? "there" : "not there",
                     gpu.nvidia_fs.empty() ? "not there" : "there");
}

void add_gpus(Table& table, const GpuReport& report) {
  if (report.gpus.empty()) table.add_row({"no CUDA device", report.absent});
  for (const GpuFacts& gpu : report.gpus) {
    table.add_row({fmt::format("GPU {}", gpu.ordinal),
                   fmt::format("{}, {} ({} free), compute capability {}.{}, {} multiprocessors", gpu.name,
                               cli::human_bytes(gpu.memory_bytes), cli::human_bytes(gpu.free_bytes),
                               gpu.compute_major, gpu.compute_minor, gpu.multiprocessors)});
    table.add_row({"  link", fmt::format("PCIe {} now; {} at most; {}", to_string(gpu.links.now),
                                         to_string(gpu.links.most), gpu.bus_id)});
    table.add_row(
        {"  register shards in place", gpu.registration == "works" ? "works" : "no: " + gpu.registration});
    table.add_row({"  batched copies", yes(gpu.batched_copy)});
  }
  if (report.gpus.empty()) return;
  if (!report.absent.empty()) table.add_row({"  left out", report.absent});
  table.add_row({"CUDA", fmt::format("driver {}, runtime {}", report.driver, report.runtime)});
  table.add_row({"GPUDirect Storage", direct_storage(report) + "; the loader does not use it"});
}

void add_cpu(Table& table, const Facts& facts) {
  const Machine& machine = facts.machine;
  table.add_row({"CPU", machine.cpu});
  table.add_row(
      {"  cores", fmt::format("{} usable of {} online{}", machine.cores, machine.cores_online,
                              facts.cpu.quota_cores > 0
                                  ? fmt::format("; the cgroup's quota allows {:.2f}", facts.cpu.quota_cores)
                                  : "; no cgroup quota")});
  std::string caches;
  for (const CacheFacts& cache : facts.cpu.caches)
    caches += fmt::format("{}L{}{} {}", caches.empty() ? "" : ", ", cache.level,
                          cache.type == "Data"          ? " data"
                          : cache.type == "Instruction" ? " instruction"
                                                        : "",
                          cli::human_bytes(cache.size_bytes));
  table.add_row({"  caches", caches.empty() ? "not known" : caches});
  table.add_row(
      {"  vectors", fmt::format("{} of {}", facts.cpu.simd, fmt::join(facts.cpu.simd_available, " "))});
}

void add_memory(Table& table, const Facts& facts) {
  const MemoryFacts& memory = facts.memory;
  table.add_row(
      {"memory", fmt::format("{}, {} available; cgroup: {}", cli::human_bytes(facts.machine.memory_bytes),
                             cli::human_bytes(memory.available_bytes),
                             memory.cgroup_available_bytes == MemoryFacts::kUnlimited
                                 ? "no limit"
                                 : cli::human_bytes(memory.cgroup_available_bytes) + " left")});
  table.add_row(
      {"  locked by mlock", fmt::format("{} (hard: {}); what CUDA registers or allocates does not count",
                                        limit_text(memory.locked_soft), limit_text(memory.locked_hard))});
  table.add_row(
      {"  registered shards", fmt::format("{} at most, unless registered_bytes says otherwise: half of "
                                          "what is available",
                                          cli::human_bytes(memory.registered_budget_bytes))});
}

void add_filesystem(Table& table, const FilesystemFacts& facts) {
  table.add_row({facts.path.string(),
                 facts.problem.empty()
                     ? fmt::format("{} on {} ({}), {} free of {}", facts.type, facts.source, facts.mount,
                                   cli::human_bytes(facts.free_bytes), cli::human_bytes(facts.size_bytes))
                     : "left out: " + facts.problem});
  if (!facts.problem.empty()) return;
  table.add_row({"  disk", !facts.rotational   ? "not one that the kernel describes"
                           : *facts.rotational ? "rotational"
                                               : "not rotational"});
  table.add_row({"  blocks", cli::human_bytes(facts.block_bytes)});
  table.add_row(
      {"  O_DIRECT", facts.direct + (facts.direct_works() && facts.direct_alignment > 0
                                         ? fmt::format(", offsets in multiples of {}", facts.direct_alignment)
                                         : "")});
}

std::string table_text(const Facts& facts) {
  Table table({Table::Align::left, Table::Align::left});
  add_gpus(table, facts.gpu);
  add_cpu(table, facts);
  add_memory(table, facts);
  table.add_row({"system", fmt::format("{}, {}", facts.machine.system, facts.machine.kernel)});
  for (const FilesystemFacts& one : facts.filesystems) add_filesystem(table, one);
  return table.to_string();
}

Json known(std::uint64_t value) { return value == MemoryFacts::kUnlimited ? Json() : Json(value); }

Json to_json(const PcieLink& link) {
  return {
      {"generation", link.generation}, {"width", link.width}, {"bytes_per_second", link.bytes_per_second()}};
}

Json to_json(const GpuReport& report) {
  Json list = Json::array();
  for (const GpuFacts& gpu : report.gpus)
    list.push_back({{"ordinal", gpu.ordinal},
                    {"name", gpu.name},
                    {"memory_bytes", gpu.memory_bytes},
                    {"free_bytes", gpu.free_bytes},
                    {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
                    {"multiprocessors", gpu.multiprocessors},
                    {"clock_hz", gpu.clock_hz},
                    {"bus_id", gpu.bus_id},
                    {"link", to_json(gpu.links.now)},
                    {"link_at_most", to_json(gpu.links.most)},
                    {"registers_read_only", gpu.registers_read_only},
                    {"registration", gpu.registration},
                    {"batched_copy", gpu.batched_copy}});
  return {{"devices", list},
          {"absent", report.absent},
          {"driver", report.driver},
          {"runtime", report.runtime},
          {"gpudirect_storage", {{"libcufile", report.cufile}, {"nvidia_fs", report.nvidia_fs}}}};
}

Json to_json(const FilesystemFacts& facts) {
  if (!facts.problem.empty()) return {{"path", facts.path.string()}, {"problem", facts.problem}};
  return {
      {"path", facts.path.string()},      {"type", facts.type},
      {"source", facts.source},           {"mount", facts.mount},
      {"size_bytes", facts.size_bytes},   {"free_bytes", facts.free_bytes},
      {"block_bytes", facts.block_bytes}, {"rotational", facts.rotational ? Json(*facts.rotational) : Json()},
      {"direct", facts.direct},           {"direct_alignment", facts.direct_alignment}};
}

void add_json(Json& json, const Facts& facts) {
  Json caches = Json::array();
  for (const CacheFacts& cache : facts.cpu.caches)
    caches.push_back({{"level", cache.level}, {"type", cache.type}, {"size_bytes", cache.size_bytes}});
  json["cuda"] = to_json(facts.gpu);
  json["cpu"] = {{"quota_cores", facts.cpu.quota_cores > 0 ? Json(facts.cpu.quota_cores) : Json()},
                 {"caches", caches},
                 {"simd", facts.cpu.simd},
                 {"simd_available", facts.cpu.simd_available}};
  json["memory"] = {{"available_bytes", facts.memory.available_bytes},
                    {"cgroup_available_bytes", known(facts.memory.cgroup_available_bytes)},
                    {"memlock_soft_bytes", known(facts.memory.locked_soft)},
                    {"memlock_hard_bytes", known(facts.memory.locked_hard)},
                    {"registered_budget_bytes", facts.memory.registered_budget_bytes}};
  json["filesystems"] = Json::array();
  for (const FilesystemFacts& one : facts.filesystems) json["filesystems"].push_back(to_json(one));
}

int run(const Arguments& arguments, const std::string& command) {
  Facts facts{machine(), cpu_facts(), memory_facts(), gpu_report(), {}};
  bool complete = true;
  for (const std::string& path : arguments.paths) {
    facts.filesystems.push_back(filesystem_facts(path));
    complete = complete && facts.filesystems.back().problem.empty();
  }
  Report report("device", command, facts.machine, arguments.outputs);
  if (!report.on_stdout()) cli::write_out(table_text(facts));
  add_json(report.json(), facts);
  report.finish();
  return complete ? 0 : 1;
}

}  // namespace

void add_device(CLI::App& app, std::function<int()>& command, const std::string& command_line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("device", R"(
      List what the loader can use on this machine

      Describes the GPUs and their links, the memory that may be locked, the processor, and the filesystems of the PATHs
      (if one can be written to, a block is written to a file without a name). Nothing is timed: PCIe figures are those
      that the link reports, in one direction. Works without a GPU.

      Example: shardbench device /data /dev/shm --json device.json)");
  sub->add_option("PATH", arguments->paths, "Files or folders whose filesystems are described");
  add_output_options(*sub, arguments->outputs, "Write the same as JSON", Chart::none);
  sub->callback([arguments, &command, command_line] {
    command = [arguments, command_line] { return run(*arguments, command_line); };
  });
}

}  // namespace shard::bench
