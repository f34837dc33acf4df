// doctor: compares this machine with what conversion and loading need.
#include <fmt/format.h>

#include <memory>

#include "base/files/disk.hpp"
#include "base/system/machine_check.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "shard/loader/direct_reads.hpp"
#include "shardctl/commands.hpp"
#include "shardctl/dataset/json_text.hpp"
#include "shardctl/subcommand.hpp"

namespace shard::ctl {
namespace {

// Why the loader cannot use io_uring; empty: it can.
std::string uring_problem() {
  try {
    make_uring_queue(1);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void print_text(const std::vector<MachineCheck>& checks, std::size_t wrong) {
  for (const MachineCheck& check : checks) {
    cli::out("{} {}: {}\n", check.advice.empty() ? "ok  " : "LOOK", check.name, check.is);
    cli::out("       should be: {}\n", check.should_be);
    if (!check.advice.empty()) cli::out("       to do: {}\n", check.advice);
  }
  cli::out("{}\n", wrong == 0 ? "everything is as it should be"
                              : cli::counted(wrong, "line") + " of " + std::to_string(checks.size()) +
                                    " should be looked at");
}

void print_json(const std::vector<MachineCheck>& checks) {
  Json list = Json::array();
  for (const MachineCheck& check : checks)
    list.push_back({{"name", check.name},
                    {"ok", check.advice.empty()},
                    {"is", check.is},
                    {"should_be", check.should_be},
                    {"advice", check.advice}});
  cli::write_out(json_text(list, 2) + "\n");
}

}  // namespace

int doctor(const DoctorOptions& options) {
  std::vector<MachineCheck> checks = check_machine(read_machine());
  for (MachineCheck& check : check_disk(options.folder, read_disk(options.folder)))
    checks.push_back(std::move(check));
  checks.push_back(check_uring(uring_problem()));
  std::size_t wrong = 0;
  for (const MachineCheck& check : checks) wrong += check.advice.empty() ? 0 : 1;
  options.json ? print_json(checks) : print_text(checks, wrong);
  return wrong == 0 ? kExitOk : kExitDifferent;
}

void add_doctor(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* const command = app.add_subcommand("doctor", R"(
      Compare this machine with what conversion and loading need, and say what to do

      Looks at CPUs, memory, the limit of open files, the disk of DIR (a block is written to a file without a name), O_DIRECT and io_uring.
      Exit code 1: something should be looked at. For GPUs, and for the question whether a training program waits for its data:
      python -m shardloader doctor.)");
  command->add_option("DIR", options->folder, "A folder on the disk where the data are")
      ->capture_default_str();
  add_json(command, options->json);
  runs(command, chosen, [options] { return doctor(*options); });
}

}  // namespace shard::ctl
