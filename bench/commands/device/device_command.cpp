#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.hpp"
#include "harness/cpu_facts.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/gpu_facts.hpp"

namespace shard::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> paths;
  Outputs outputs;
};

struct Facts {
  CpuFacts cpu;
  MemoryFacts memory;
  GpuReport gpu;
  std::vector<FilesystemFacts> filesystems;
};

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

int run(Arguments& arguments, const std::string& command) {
  Report report("device", command, arguments.outputs);
  Facts facts{cpu_facts(), memory_facts(), gpu_report(), {}};
  for (const std::string& path : arguments.paths) facts.filesystems.push_back(filesystem_facts(path));
  add_json(report.json(), facts);
  report.finish(device_section);
  return any_problem(facts.filesystems) ? 1 : 0;
}

}  // namespace

void add_device(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& sub = subcommands.add("device", R"(
      List what the loader can use on this machine

      Describes the GPUs and their links, the memory that may be locked, the processor, and the filesystems of the PATHs
      (if one can be written to, a block is written to a file without a name). Nothing is timed: PCIe figures are those
      that the link reports, in one direction. Works without a GPU.

      Example: shardbench device /data /dev/shm --json device.json)",
                                  arguments, run);
  sub.add_option("PATH", arguments->paths, "Files or folders whose filesystems are described");
  add_output_options(sub, arguments->outputs, "Write the same as JSON", Chart::none);
}

}  // namespace shard::bench
