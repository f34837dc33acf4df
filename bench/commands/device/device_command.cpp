#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "harness/cpu_facts.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/gpu_facts.hpp"
#include "sections.hpp"

namespace shard::bench {
namespace {

struct DeviceArguments {
  std::vector<std::string> paths;
  Outputs outputs;
};

int run_device(DeviceArguments& arguments, const std::string& command) {
  Report report("device", command, arguments.outputs);
  Report::Json& json = report.json();
  json["cuda"] = gpu_report();
  json["cpu"] = cpu_facts();
  json["memory"] = memory_facts();
  json["filesystems"] = Report::Json::array();
  bool all = true;
  for (const std::string& path : arguments.paths) {
    json["filesystems"].push_back(filesystem_facts(path));
    all = all && !json["filesystems"].back().contains("problem");
  }
  report.finish(device_section);
  return all ? 0 : 1;
}

}  // namespace

void add_device(const Subcommands& subcommands) {
  const auto arguments = std::make_shared<DeviceArguments>();
  CLI::App& sub = subcommands.add("device", R"(
      List what the loader can use on this machine

      Describes the GPUs and their links, the memory that may be locked, the processor, and the filesystems of the PATHs
      (if one can be written to, a block is written to a file without a name). Nothing is timed: PCIe figures are those
      that the link reports, in one direction. Works without a GPU.

      Example: shardbench device /data /dev/shm --json device.json)",
                                  arguments, run_device);
  sub.add_option("PATH", arguments->paths, "Files or folders whose filesystems are described");
  add_output_options(sub, arguments->outputs, "Write the same as JSON", Chart::none);
}

}  // namespace shard::bench
